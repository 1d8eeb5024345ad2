"""The style of the page, the only one that its content policy allows, by its digest."""

from __future__ import annotations

import base64
import hashlib

from .svg import STYLE as GRAPHS

#: How many depths of the tree are indented.
DEPTHS = 12

_PAGE = """\
:root{color-scheme:light dark;--bg:#f7f7f4;--card:#ffffff;--ink:#1f2933;--dim:#5f6b78;
--line:#e1e4e8;
--accent:#2a6f97;--accent-soft:#dbe8f0;--second:#c9692c;--good:#2f7d4f;--bad:#b3372f;
--p0:#2a6f97;--p1:#7fa8c4;--p2:#9bb27a;--p3:#d6a05a;--p4:#b8bec6}
@media (prefers-color-scheme:dark){:root{--bg:#0f1216;--card:#171c22;--ink:#e6eaef;--dim:#97a3af;
--line:#2a323b;--accent:#6fb1d8;--accent-soft:#1d3342;--second:#e59a63;--good:#6cc08b;--bad:#ef8078;
--p0:#4f94bd;--p1:#7fa8c4;--p2:#8aa568;--p3:#c08d4c;--p4:#5d6976}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);
font:15px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1080px;margin:0 auto;padding:40px 24px 64px}
code,pre,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-size:.88em}
h1{font-size:30px;line-height:1.2;margin:4px 0 20px;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:19px;margin:44px 0 12px;letter-spacing:-.005em}
h3{font-size:15px;margin:0;overflow-wrap:anywhere}
p{margin:0 0 10px}
.dim,.eyebrow{color:var(--dim)}
.eyebrow{font-size:13px;margin:0}
.good{color:var(--good)}
.bad{color:var(--bad)}
nav{display:flex;flex-wrap:wrap;gap:6px 18px;margin-top:20px;font-size:14px}
a{color:var(--accent);text-decoration:none}
a:hover{text-decoration:underline}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(128px,1fr));margin:0;
background:var(--card);border:1px solid var(--line);border-radius:10px;overflow:hidden}
.facts div{box-shadow:0 0 0 .5px var(--line);padding:12px 16px}
.facts dt{color:var(--dim);font-size:13px}
.facts dd{margin:0;font-size:20px;font-variant-numeric:tabular-nums;white-space:nowrap}
.facts .wide{white-space:normal;font-size:15px;line-height:1.35}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px}
.card+.card{margin-top:12px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px}
th{text-align:left;font-weight:500;color:var(--dim);font-size:13px;padding:0 14px 8px 0}
td{border-top:1px solid var(--line);padding:6px 14px 6px 0;vertical-align:top}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;padding-right:0;
padding-left:14px}
td.name{overflow-wrap:anywhere;min-width:118px}
td.value{overflow-wrap:anywhere}
tr.config td{border:0;padding-top:0;font-size:13px;color:var(--dim);overflow-wrap:anywhere}
tr.module td{font-weight:600}
tr.module .more{font-weight:400}
tr.value td,tr.note td,tr.link td{color:var(--dim)}
.more{display:block;color:var(--dim);font-size:13px;overflow-wrap:anywhere}
.bar{display:block;width:100%;height:14px;border-radius:4px}
.legend{display:flex;flex-wrap:wrap;gap:4px 22px;list-style:none;margin:12px 0 0;padding:0;
font-size:14px}
.legend svg{width:10px;height:10px;margin-right:7px}
.p0{fill:var(--p0)}.p1{fill:var(--p1)}.p2{fill:var(--p2)}.p3{fill:var(--p3)}.p4{fill:var(--p4)}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(212px,1fr));gap:12px}
.grid .card{margin:0;padding:12px 14px}
.grid.wide{grid-template-columns:repeat(auto-fill,minmax(300px,1fr))}
.grid h3{font-size:13.5px;font-weight:600}
.card p{margin:0 0 4px}
.card p:last-child{margin:0}
.small{font-size:12.5px;color:var(--dim);line-height:1.45}
.chart{display:block;width:100%;height:auto;margin:8px 0 2px}
.chart text{font:10.5px system-ui,sans-serif;fill:var(--dim)}
.chart .bin{fill:var(--accent)}
.chart .axis{stroke:var(--line);stroke-width:1}
.chart .zero{stroke:var(--dim);stroke-width:1;stroke-dasharray:2 2}
.chart .line{fill:none;stroke:var(--accent);stroke-width:2;stroke-linejoin:round}
.chart .second{stroke:var(--second)}
.key{display:inline-block;width:14px;height:3px;border-radius:2px;background:var(--accent);
vertical-align:middle;margin:0 5px 0 0}
.key.second{background:var(--second);margin-left:14px}
.ends{display:flex;justify-content:space-between;font-variant-numeric:tabular-nums}
details{margin-top:8px}
summary{cursor:pointer;color:var(--accent);font-size:14px}
.trace{border-top:1px solid var(--line);padding-top:12px;margin-top:12px}
.trace p{margin:0}
.call{overflow-wrap:anywhere}
.figure{overflow-x:auto;border:1px solid var(--line);border-radius:8px;margin-top:10px;
background:var(--card)}
.figure svg{display:block;margin:0 auto}
pre{overflow:auto;max-height:480px;margin:10px 0 0;padding:12px 14px;background:var(--bg);
border:1px solid var(--line);border-radius:8px;line-height:1.45}
footer{margin-top:48px;padding-top:16px;border-top:1px solid var(--line);font-size:13px;
color:var(--dim)}
@media (max-width:560px){main{padding:24px 14px 40px}h1{font-size:24px}.facts dd{font-size:17px}
.card{padding:12px 13px}.facts{grid-template-columns:1fr 1fr}
.grid{grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:8px}
.facts .wide{font-size:14px}}
@media print{details>*{display:block}pre{max-height:none}}
"""

STYLE = (
    _PAGE
    + "".join(f".d{i}{{padding-left:{18 * i}px}}\n" for i in range(1, DEPTHS + 1))
    + "@media (max-width:560px){"
    + "".join(f".d{i}{{padding-left:{9 * i}px}}" for i in range(1, DEPTHS + 1))
    + "}\n"
    + GRAPHS
)

#: No script, no picture, no font, no form, nothing from anywhere; and no style but this one.
POLICY = (
    "default-src 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    + "'; base-uri 'none'; form-action 'none'"
)
