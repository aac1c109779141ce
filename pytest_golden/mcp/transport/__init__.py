"""How clients reach the tools: by the process's own stdin and stdout, or by HTTP."""
