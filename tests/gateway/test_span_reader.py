from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway import span_reader as span_reader_module
from pytest_golden.gateway.model import Ending, PipelineOutcome, Problem
from tests.gateway.conftest import NO_NAMESPACES, RunElsewhere
from tests.trajectory.otel.bodies import request, span

if TYPE_CHECKING:
    from collections.abc import Callable

_SDK = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("etl")
"""


def curl(*spans: Any) -> str:
    body = request(*spans).decode()
    address = '"$OTEL_EXPORTER_OTLP_ENDPOINT/v1/traces"'
    return f"curl -sSf -H 'Content-Type: application/json' --data '{body}' {address} > /dev/null\n"


def contents(outcome: PipelineOutcome) -> list[Any]:
    assert outcome.trajectory is not None
    return [step.content for step in outcome.trajectory.steps]


@pytest.mark.parametrize("network", [True, False])
@pytest.mark.parametrize("view", ["overlay", "copy"])
def test_curl_leaves_steps_in_every_view(
    view: str, network: bool, run: Callable[..., PipelineOutcome], sealing: None
) -> None:
    script = 'set -e\ntest -z "$GOLDEN_HANDOVER"\n' + curl(span("load", 1), span("join", 2, parent=1))
    outcome = run(script, view=view, network=network, steps="otel", before=[["true"]], after=[["true"]])
    assert (outcome.ending, outcome.exit_code, outcome.stderr) == (Ending.EXITED, 0, "")
    assert contents(outcome) == ["load", "join"]
    assert outcome.trajectory is not None
    assert outcome.trajectory.steps[1].parent_step_id == outcome.trajectory.steps[0].id
    assert outcome.warnings == ()


def test_curl_leaves_steps_without_a_seal(run_elsewhere: RunElsewhere, project_dir: Any) -> None:
    (project_dir / "etl.sh").write_text(curl(span("load")))
    code = """
        with ExecutionGateway(workspace) as gateway:
            outcome = guarded(gateway, GoldenProjectConfig("etl", "project/etl.sh", steps="otel"))
            print(json.dumps({"steps": [step.content for step in outcome.trajectory.steps], "sealed": outcome.sealed}))
    """
    assert run_elsewhere(NO_NAMESPACES, code) == {"steps": ["load"], "sealed": False}


def test_the_real_sdk_leaves_ten_thousand_spans_and_none_is_lost(run: Callable[..., PipelineOutcome]) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    script = _SDK + (
        'with tracer.start_as_current_span("root"):\n'
        "    for number in range(9_999):\n"
        '        with tracer.start_as_current_span("row", attributes={"number": number}):\n'
        "            pass\n"
        "provider.shutdown()\n"
    )
    outcome = run(script.lstrip(), network=False, steps="otel")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.trajectory is not None
    steps = outcome.trajectory.steps
    assert len(steps) == 10_000
    assert steps[0].context == {"kind": "internal", "scope": "etl", "service": "sales"}
    assert [step.metadata["number"] for step in steps[1:]] == list(range(9_999))
    assert {step.parent_step_id for step in steps[1:]} == {steps[0].id}
    assert "lost_steps" not in outcome.trajectory.metadata


def test_an_instrumented_http_client_leaves_its_calls(run: Callable[..., PipelineOutcome]) -> None:
    pytest.importorskip("opentelemetry.instrumentation.requests")
    script = _SDK + (
        "import http.server, threading, requests\n"
        "from opentelemetry.instrumentation.requests import RequestsInstrumentor\n"
        "RequestsInstrumentor().instrument()\n"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        'requests.get(f"http://127.0.0.1:{server.server_port}/nothing")\n'
        "provider.shutdown()\n"
    )
    outcome = run(script.lstrip(), network=False, steps="otel")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.trajectory is not None
    calls = [step for step in outcome.trajectory.steps if step.content == "GET"]
    assert len(calls) == 1
    assert calls[0].importance == "critical"
    assert 404 in calls[0].metadata.values()


def test_what_the_project_sets_wins(run: Callable[..., PipelineOutcome]) -> None:
    script = 'echo "$OTEL_SERVICE_NAME $OTEL_EXPORTER_OTLP_ENDPOINT $OTEL_TRACES_EXPORTER"'
    mine = {"OTEL_SERVICE_NAME": "mine", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
    outcome = run(script, network=False, steps=("otel",), set_env=mine)
    assert outcome.stdout == "mine http://collector:4318 otlp\n"
    assert run('echo "[$OTEL_TRACES_EXPORTER]"').stdout == "[]\n"


def test_spans_are_redacted_as_other_steps(run: Callable[..., PipelineOutcome]) -> None:
    attributes = [{"key": "url", "value": {"stringValue": "tell hunter2secret"}}]
    script = curl(span("use hunter2secret", attributes=attributes))
    outcome = run(script, network=False, steps="otel", set_env={"DB_PASSWORD": "hunter2secret"})
    assert outcome.trajectory is not None
    assert "hunter2secret" not in json.dumps(outcome.trajectory.to_dict())
    assert len(outcome.trajectory.steps) == 1


def test_the_start_of_a_program_in_a_network_of_its_own_is_as_without_a_receiver(
    run: Callable[..., PipelineOutcome], project_dir: Any, sealing: None
) -> None:
    (project_dir / "plain").write_text('echo "no first line $1"\n')
    (project_dir / "plain").chmod(0o755)
    plain = run("true", network=False, steps="otel", command=["./plain", "x"])
    assert (plain.exit_code, plain.stdout) == (0, "no first line x\n")
    (project_dir / "broken").write_text("#!/no/such/interpreter\n")
    (project_dir / "broken").chmod(0o755)
    for steps in ("auto", "otel"):
        outcome = run("true", network=False, steps=steps, command=["./broken"])
        assert (outcome.ending, outcome.problem) == (Ending.NOT_STARTED, Problem.COMMAND_NOT_FOUND)
    killed = run("kill -9 $$", network=False, steps="otel")
    assert killed.exit_code == run("kill -9 $$", network=False).exit_code
    pipe = run("yes | head -1", network=False, steps="otel")
    assert pipe.stdout == "y\n"
    assert pipe.stderr == ""


def test_garbage_costs_steps_and_never_the_result(run: Callable[..., PipelineOutcome]) -> None:
    script = (
        "import os, socket, urllib.request, zlib, gzip\n"
        'address = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"\n'
        "def post(body, **headers):\n"
        '    named = {"Content-Type": "application/x-protobuf", **{k.replace("_", "-"): v for k, v in headers.items()}}\n'
        "    urllib.request.urlopen(urllib.request.Request(address, body, named)).read()\n"
        'post(b"garbage")\n'
        'post(gzip.compress(bytes(1 << 28)), Content_Encoding="gzip")\n'
        'clients = [socket.create_connection(("127.0.0.1", int(address.split(":")[2].split("/")[0]))) for _ in range(900)]\n'
        "for client in clients[-100:]:\n"
        '    client.sendall(b"POST /v1/traces HTTP/1.1\\r\\nContent-Length: 99\\r\\n\\r\\nx")\n'
    )
    outcome = run(script, network=False, steps="otel")
    assert (outcome.exit_code, outcome.problem) == (0, None), outcome.stderr
    assert outcome.trajectory is not None
    assert outcome.trajectory.metadata["lost_steps"] >= 102
    assert any("could not be read" in warning for warning in outcome.warnings)


def test_a_port_that_is_taken_costs_a_warning(
    run: Callable[..., PipelineOutcome], monkeypatch: pytest.MonkeyPatch, sealing: None
) -> None:
    monkeypatch.setattr("pytest_golden.gateway.process.PORT", 1)
    outcome = run("echo done", network=False, steps="otel")
    assert outcome.stdout == "done\n"
    assert "in the pipeline's network: [Errno 13]" in outcome.warnings[0]
    monkeypatch.undo()

    def broken(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(span_reader_module, "_open", broken)
    outcome = run("echo done", network=False, steps="otel")
    assert outcome.stdout == "done\n"
    assert outcome.warnings == ("no OpenTelemetry spans can be received: Too many open files",)
