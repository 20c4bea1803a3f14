"""The report's style sheet: light and dark, screen, phone and print."""

STYLE = """
:root{--ink:#1c2430;--soft:#5b6675;--paper:#fff;--rule:#dfe4ea;--model:#2563a8;--reference:#9aa5b1;--mark:#c2410c}
@media (prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#a3adba;--paper:#12161c;--rule:#2c3540;
--model:#6ea8e6;--reference:#66717e;--mark:#fb923c}}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:80rem;margin:0 auto;padding:1.5rem}h1{font-size:1.6rem}h2{font-size:1.25rem;margin-top:2.5rem}h3{font-size:1rem;color:var(--soft)}
p{max-width:46rem;color:var(--soft)}.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.875rem}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
th{color:var(--soft);font-weight:600}.text{text-align:left}.wide{width:30%;min-width:8rem}
.bar{display:block;position:relative;height:.8rem;background:var(--rule);border-radius:2px}
.fill{position:absolute;inset:0 auto 0 0;border-radius:2px}.fill.model{background:var(--model)}.fill.reference{background:var(--reference)}
.line{position:absolute;top:-.2rem;bottom:-.2rem;width:2px;background:var(--mark)}
@media print{main{max-width:none;padding:0}section{break-inside:avoid}}
"""
