"""The Space: one Gradio page, an API and an MCP server on the engine that the workbench uses."""
