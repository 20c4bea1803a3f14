"""`dagster dev` with the web server `assets.web_server`, started by `dtef ui`."""

from __future__ import annotations

from assets.stage.dagster_internals import dev_command

if __name__ == "__main__":
    dev_command(web_server="assets.web_server").main(prog_name="dagster dev")
