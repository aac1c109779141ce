"""What real engines printed, shortened: standard output and standard error of a run in which one task fails."""

from __future__ import annotations

# Snakemake 9.27
SNAKEMAKE = """\
Assuming unrestricted shared filesystem usage.

SNAKEMAKE
=========
  Date: 2026-11-27 09:10:55

Building DAG of jobs...
Job stats:
job       count
------  -------
orders        1
bad           1

Select jobs to execute...
Execute 2 jobs...

[Fri Nov 27 09:10:55 2026]
localrule orders:
    output: out/orders.csv
    jobid: 1
    reason: Missing output files: out/orders.csv
    wildcards: day=monday
    resources: tmpdir=/tmp
[Fri Nov 27 09:10:57 2026]
Finished jobid: 1 (Rule: orders)
1 of 2 steps (50%) done
Select jobs to execute...
Execute 1 jobs...

[Fri Nov 27 09:10:57 2026]
localrule bad:
    input: out/orders.csv
    output: out/bad.txt
    jobid: 0
    resources: tmpdir=/tmp
note
cat: nope.txt: No such file or directory
RuleException:
CalledProcessError in file "/work/Snakefile", line 17:
Command 'set -euo pipefail;  cat nope.txt > out/bad.txt' returned non-zero exit status 1.
[Fri Nov 27 09:10:58 2026]
Error in rule bad:
    message: None
    jobid: 0
    input: out/orders.csv
    shell:
        cat nope.txt > out/bad.txt
        (command exited with non-zero exit code)
Shutting down, this might take some time.
Exiting because a job execution failed. Look above for error messages
WorkflowError:
At least one job did not complete successfully.
"""
# Snakemake 7.32 tells the end of a job in other words.
SNAKEMAKE_7 = """\
[Mon Mar  2 08:00:01 2026]
rule orders:
    output: out/orders.csv
    jobid: 3
    reason: Missing output files: out/orders.csv
    resources: tmpdir=/tmp

[Mon Mar  2 08:00:04 2026]
Finished job 3.
1 of 1 steps (100%) done
"""
# GNU make 4.3
MAKE = """\
Makefile:3: target 'orders.csv' does not exist
printf "1 10\\n2 20\\n" > orders.csv
Makefile:5: update target 'total.txt' due to: orders.csv
awk "{ t += $2 } END { print t }" orders.csv > total.txt
Makefile:7: update target 'bad.txt' due to: orders.csv
cp nope.csv bad.txt
"""
MAKE_ERRORS = """\
cp: cannot stat 'nope.csv': No such file or directory
make: *** [Makefile:8: bad.txt] Error 1
make: *** No rule to make target 'never.csv', needed by 'lost.txt'.
make: Target 'all' not remade because of errors.
"""
# DVC 3.67
DVC = """\
Stage 'orders' didn't change, skipping
Running stage 'clean':
> cp orders.csv clean.csv
Updating lock file 'dvc.lock'

Running stage 'total':
> cp nope.csv total.csv
"""
DVC_ERRORS = """\
cp: cannot stat 'nope.csv': No such file or directory
ERROR: failed to reproduce 'total': failed to run: cp nope.csv total.csv, exited with 1
"""
_DAGSTER = "2026-11-27 09:04:{} +0000 - dagster - {} - __ASSET_JOB - af35a5e6 - {}\n"
# Dagster 1.13
DAGSTER = "".join(
    [
        _DAGSTER.format(13, "DEBUG", '2125 - RUN_START - Started execution of run for "__ASSET_JOB".'),
        _DAGSTER.format(14, "DEBUG", '2129 - orders - STEP_START - Started execution of step "orders".'),
        _DAGSTER.format(
            14, "DEBUG", "orders - Writing file at: /tmp/storage/orders using PickledObjectFilesystemIOManager..."
        ),
        _DAGSTER.format(14, "DEBUG", '2129 - orders - STEP_SUCCESS - Finished execution of step "orders" in 42ms.'),
        _DAGSTER.format(15, "DEBUG", '2130 - slow - STEP_START - Started execution of step "slow".'),
        _DAGSTER.format(16, "DEBUG", '2130 - slow - STEP_SUCCESS - Finished execution of step "slow" in 1m2s.'),
        _DAGSTER.format(17, "DEBUG", '2145 - bad - STEP_START - Started execution of step "bad".'),
        _DAGSTER.format(17, "ERROR", '2145 - bad - STEP_FAILURE - Execution of step "bad" failed.'),
        '\ndagster._core.errors.DagsterExecutionStepExecutionError: Error occurred while executing op "bad"::\n',
        "\nKeyError: 'amount'\n\nStack Trace:\n  File \"/work/definitions.py\", line 11, in bad\n",
        _DAGSTER.format(
            17, "ERROR", "2125 - RUN_FAILURE - Execution of run for \"__ASSET_JOB\" failed. Steps failed: ['bad']."
        ),
    ]
)
# Prefect 3
PREFECT = """\
09:14:11.047 | INFO    | prefect - Starting temporary server on http://127.0.0.1:8080
09:14:25.168 | INFO    | Flow run 'slick-deer' - Beginning flow run 'slick-deer' for flow 'shop'
09:14:25.204 | INFO    | Task run 'load-2e1' - Finished in state Completed()
09:14:25.213 | ERROR   | Task run 'bad-cd8' - Task run failed with exception: KeyError('amount')
09:14:25.220 | ERROR   | Task run 'bad-cd8' - Finished in state Failed("Task run encountered an exception KeyError: 'amount'")
09:14:25.221 | INFO    | Task run 'after-9ab' - Finished in state NotReady("Upstream task run did not reach a 'COMPLETED' state.")
09:14:26.245 | INFO    | Flow run 'slick-deer' - Finished in state Failed("Flow run encountered an exception: KeyError: 'amount'")
"""
# SQLMesh 0.236
SQLMESH = """\
**Models needing backfill:**
* `shop.orders`: [full refresh]
[1/2] shop.orders    [insert 2026-01-01 - 2026-01-31]                    0.02s
[2/2] shop.orders    [insert 2026-02-01 - 2026-02-28, audits passed 1]   0.03s
Executing model batches ━━━━━━━━━━━━━━━━━━━━ 100.0% • 1/1 • 0:00:00


**Failed models**
* `"wh"."shop"."revenue"`

  ```
    BinderException:
      Binder Error: Referenced column "nope" not found in FROM clause!
      Candidate bindings: "amount"

  ```
* `"wh"."shop"."margin"`

  ```
    'not_null' audit error: 2 rows failed
  ```

Error: Plan application failed.
"""
# SQLMesh 0.236, whose unit tests fail: of another column, and of other rows.
SQLMESH_TESTS = """\
Initializing new project state...
.EF```
----------------------------------------------------------------------
ERROR: test_revenue (/shop/tests/test_revenue.yaml)
----------------------------------------------------------------------
sqlmesh.utils.errors.TestError: Failed to run test:
Detected unknown column(s)

Expected column(s): customer_id, income
Unknown column(s): revenue

----------------------------------------------------------------------
FAIL: test_orders (/shop/tests/test_orders.yaml)
----------------------------------------------------------------------
                  Missing rows
┏━━━━━━┳━━━━━━━━━━━━━━┓
┃ Row  ┃ customer_id  ┃

```


**Ran `3` Tests Against `duckdb`**

**Failed tests (2):**
 • `shop.revenue`::`test_revenue`
 • `shop.orders`::`test_orders`


Error: Cannot generate plan due to failing test(s). Fix test(s) and run again.
"""
# Nextflow 25
NEXTFLOW = """\
task_id\thash\tnative_id\tname\tstatus\texit\tsubmit\tduration\trealtime\t%cpu\tpeak_rss\tpeak_vmem\trchar\twchar
4\tfb/cc864e\t58589\tGENERATE (sample2)\tCOMPLETED\t0\t2025-05-25 12:13:14.094\t650ms\t224ms\t34.4%\t3.1 MB\t4.6 MB\t193.5 KB\t540 B
2\t0e/7e2ae7\t58654\tQC (sample1)\tFAILED\t1\t2025-05-25 12:13:14.218\t1m 39s\t1m 2.5s\t35.5%\t3.2 MB\t4.6 MB\t193.5 KB\t537 B
3\t02/5852bd\t23150\tUNZIP (hg19.zip)\tCACHED\t0\t2025-05-25 12:13:14.001\t7.2s\t-\t79.6%\t11 MB\t36 MB\t108.1 MB\t370.4 MB
"""
# targets 1.11
TARGETS = """\
name|type|data|command|depend|seed|path|time|size|bytes|format|repository|iteration|parent|children|seconds|warnings|error
load_data|function|be0588ab54359c8d
raw_data|stem|dc2b96cfe1c39db3|7c214b853ba45ade|90471779626cfb7b|-1101284392||t20255.1031264458s|s276b|276|rds|local|vector|||0.397||
points_940d58fc|branch|71088184ecd74e24|d2f5c4d8e5ec1b17|bbc4b631d1e683fc|-1996657720||t19623.5040553847s|s1b|154323|rds|local|vector|points||0.02||
points|pattern|c72f3d17c4d1e7d3|d2f5c4d8e5ec1b17||-2014045372||||308722|rds|local|vector||points_940d58fc|0.04||
fox_plot|stem|8c8c926792488443|0ac07de256c9b1ad|9a70e390f7a23811|789134142||t20255.1s|s74b|74|rds|local|vector|||0.293|Using size was deprecated.|
total|stem|error|38f66c3c7d2e396c|3fefabcfc1e52999|1610115310||t19623.5s|s49b|49|rds|local|vector|||0||object amount not found
"""
