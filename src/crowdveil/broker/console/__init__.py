"""What requesters and operators see: server-rendered pages, readable without scripts, charts as SVG with their data."""
