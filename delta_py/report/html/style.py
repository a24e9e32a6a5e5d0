"""The style of the report's page: one accent colour, light and dark, wide, narrow and on paper."""

STYLE = """
:root{color-scheme:light dark;--page:#fbfbfa;--card:#fff;--ink:#1d2329;--soft:#59636e;--line:#dfe3e7;--faint:#eef1f3;
--accent:#17629c;--tint:#cfe2f0;--warn:#9a3412;--shade:rgb(29 35 41/.28);
--font:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"Liberation Sans",sans-serif}
@media (prefers-color-scheme:dark){:root{--page:#14181c;--card:#1b2025;--ink:#e4e8ec;--soft:#a0abb6;--line:#343c44;
--faint:#252c33;--accent:#6db1e4;--tint:#27465d;--warn:#f0a47c;--shade:rgb(0 0 0/.75)}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 var(--font);
font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
main,header,footer{max-width:882px;margin:0 auto;padding:0 16px}
header{padding-top:32px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px;font-weight:650}
h2{font-size:18px;margin:0 0 4px;font-weight:650}
h3{font-size:15px;margin:20px 0 4px;font-weight:650}
p{margin:0 0 10px}
.soft,.source{color:var(--soft)}
.source{font-size:13px}
code,pre{font:13px/1.5 ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:20px 24px;margin:0 0 20px}
a{color:var(--accent)}
a:focus-visible,.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:2px}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 16px;padding:0;margin:14px 0 20px;font-size:14px}
.skip{position:absolute;left:-9999px}
.skip:focus{position:static}
.keys{display:grid;grid-template-columns:repeat(auto-fit,minmax(120px,1fr));gap:14px;margin:18px 0 0}
.keys div{border-top:2px solid var(--line);padding-top:6px}
.keys dt{font-size:13px;color:var(--soft)}
.keys dd{margin:0;font-size:19px;line-height:1.3;font-weight:600}
.keys dd.unknown{font-size:15px;line-height:28px}
.unknown{color:var(--soft);font-style:italic}
ol.advice{list-style:none;padding:0;margin:12px 0 0}
ol.advice>li{border-left:3px solid var(--accent);padding:0 0 0 14px;margin:0 0 18px}
ol.advice>li.urgent{border-color:var(--warn)}
.urgent h3{color:var(--warn)}
ol.advice h3{margin:0 0 2px}
ol.advice p{margin:0 0 4px}
dl.commands{display:grid;grid-template-columns:auto minmax(0,1fr);gap:2px 12px;margin:6px 0 4px}
dl.commands dt{color:var(--soft);font-size:13px;line-height:24px}
dl.commands dd{margin:0;line-height:24px}
dl.commands code{background:var(--faint);border-radius:4px;padding:2px 6px;
-webkit-box-decoration-break:clone;box-decoration-break:clone}
table{border-collapse:collapse;width:100%;font-size:14px}
caption{text-align:left;color:var(--soft);font-size:13px;padding:0 0 4px}
th,td{text-align:left;vertical-align:top;padding:5px 14px 5px 0;border-bottom:1px solid var(--line)}
th:last-child,td:last-child{padding-right:0}
thead th{font-weight:600;font-size:13px;color:var(--soft);white-space:nowrap}
tbody th{font-weight:500}
td.number,th.number{text-align:right;white-space:nowrap}
.list th,.list td{overflow-wrap:normal;word-break:normal}
.nowrap{white-space:nowrap}
.list bdi{display:inline-block;max-width:300px;overflow-wrap:break-word}
.facts{table-layout:fixed}
.facts th:first-child{width:29%}.facts th:last-child{width:38%}
.facts td:not(.source){font-weight:600}
.facts td .unknown,.facts td.unknown{font-weight:400}
.scroll{overflow-x:auto;--edge:24px;--shadow:9px;background-repeat:no-repeat;
background-image:linear-gradient(90deg,var(--card) 40%,transparent),linear-gradient(270deg,var(--card) 40%,transparent),
linear-gradient(90deg,var(--shade),transparent),linear-gradient(270deg,var(--shade),transparent);
background-position:0 0,100% 0,0 0,100% 0;background-attachment:local,local,scroll,scroll;
background-size:var(--edge) 100%,var(--edge) 100%,var(--shadow) 100%,var(--shadow) 100%}
.hint{display:none}
.list caption div{position:sticky;left:0;width:max-content;max-width:min(100%,100vw - 32px)}
section>:last-child,ol.advice>li:last-child{margin-bottom:0}
p.source{margin:10px 0 0}
details{margin:8px 0 12px}
summary{cursor:pointer;color:var(--accent);font-size:14px}
figure{margin:14px 0 10px}
.axis{font-size:13px;color:var(--soft)}
svg{display:block;max-width:100%;height:auto;font:12px var(--font)}
svg.middle,svg.narrow{display:none}
text{fill:var(--soft)}
text.label,text.value{fill:var(--ink)}
.bar,.dot{fill:var(--accent)}
.dot{fill-opacity:.55;stroke:var(--card);stroke-width:1}
.quiet{fill:var(--tint)}
.mark{fill:var(--ink)}
.grid{stroke:var(--line)}
.base{stroke:var(--soft)}
.frame{fill:var(--faint);stroke:var(--line)}
.file{fill:var(--accent);fill-opacity:.16;stroke:var(--accent);stroke-width:.8}
.shade1,.shade2,.shade3,.shade4,.shade5{fill:var(--accent)}
.shade1{fill-opacity:.14}.shade2{fill-opacity:.34}.shade3{fill-opacity:.54}.shade4{fill-opacity:.76}
footer{color:var(--soft);font-size:13px;padding-bottom:32px}
@media (max-width:881px){
section{padding:16px 15px;border-radius:0;margin:0 -16px 14px;border-width:1px 0}
svg.wide{display:none}svg.middle{display:block}
.facts,.facts tbody,.facts tr,.facts th,.facts td{display:block;width:auto!important;border:0;padding:0}
.facts tr{border-bottom:1px solid var(--line);padding:6px 0}
.facts caption{display:block}.facts thead{position:absolute;left:-9999px}
}
@media (max-width:639px){svg.middle{display:none}svg.narrow{display:block}}
@media (max-width:420px){.hint{display:block}}
@media print{body{background:#fff}section{break-inside:avoid}}
"""
