"""The HTTP API described for people: one page of plain HTML, made from the OpenAPI document."""

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from xclaw.gateway.openapi import Json

POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 3rem; text-transform: capitalize; }
section { border-top: 1px solid #ddd; padding: .5rem 0 1rem; } h3 { margin: .8rem 0 .2rem; font-size: 1rem; }
code, pre { font: 14px/1.45 ui-monospace, monospace; } pre { background: #f6f6f4; padding: .8rem; overflow: auto; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; }
td, th { text-align: left; vertical-align: top; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #eee; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; } .scope { color: #666; }
@media (prefers-color-scheme: dark) {
  body { background: #16181b; color: #ddd; } pre { background: #22252a; }
  section, td, th { border-color: #333; }
}
"""


def reference_page(document: Json) -> str:
    """The page; nothing in it runs."""
    info = cast("Mapping[str, str]", document["info"])
    groups: dict[str, list[str]] = {}
    for path, methods in cast("Mapping[str, Mapping[str, Json]]", document["paths"]).items():
        for method, operation in methods.items():
            group = cast("Sequence[str]", operation["tags"])[0]
            groups.setdefault(group, []).append(_operation(method, path, operation))
    components = cast("Mapping[str, Mapping[str, Json]]", document["components"])
    parts = [f"<h2>{_text(group)}</h2>{''.join(sections)}" for group, sections in groups.items()]
    parts.append("<h2>Shapes</h2>" + "".join(_shape(*each) for each in components["schemas"].items()))
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{_text(info['title'])} API</title><style>{_STYLE}</style></head>"
        f"<body><h1>{_text(info['title'])} API</h1><p>{_text(info['description'])}</p>"
        "<p>For programs: <a href='/openapi.json'>openapi.json</a>, and <a href='/schema.json'>schema.json</a> "
        f"for the frames of the WebSocket at <code>/ws</code>.</p>{''.join(parts)}</body></html>"
    )


def _operation(method: str, path: str, operation: Json) -> str:
    parts = [
        f"<section id='{_text(str(operation['operationId']))}'>",
        f"<h3><span class='method'>{_text(method.upper())}</span> <code>{_text(path)}</code></h3>",
        f"<p>{_text(str(operation['summary']))}. <span class='scope'>Scope: {_text(str(operation['x-scope']))}"
        "</span></p>",
    ]
    if "description" in operation:
        parts.append(f"<p>{_text(str(operation['description']))}</p>")
    parameters = cast("Sequence[Json]", operation["parameters"])
    parts.append(_table((str(p["name"]), str(p["in"]), str(p.get("description", ""))) for p in parameters))
    if "requestBody" in operation:
        parts.append(f"<p>Body: {_content(cast('Json', operation['requestBody']))}</p>")
    responses = cast("Mapping[str, Json]", operation["responses"])
    parts.append(_table((s, str(r["description"]), _content(r)) for s, r in responses.items()))
    return "".join([*parts, "</section>"])


def _content(holder: Json) -> str:
    """What a body is, in a few words."""
    content = cast("Mapping[str, Mapping[str, Json]]", holder.get("content", {}))
    return ", ".join(f"{media_type} {_named(each['schema'])}".strip() for media_type, each in content.items())


def _named(schema: Json) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        return f"list of {_named(cast('Json', schema['items']))}"
    return ""


def _shape(name: str, schema: Json) -> str:
    described = _text(str(schema.get("description", "")))
    kept = {key: value for key, value in schema.items() if key not in ("title", "description")}
    shown = _text(json.dumps(kept, indent=2, ensure_ascii=False))
    return f"<section id='{_text(name)}'><h3>{_text(name)}</h3><p>{described}</p><pre>{shown}</pre></section>"


def _table(rows: Iterable[tuple[str, str, str]]) -> str:
    lines = [
        f"<tr><td><code>{_text(first)}</code></td><td>{_text(second)}</td><td>{_text(third)}</td></tr>"
        for first, second, third in rows
    ]
    return f"<table>{''.join(lines)}</table>" if lines else ""


def _text(text: str) -> str:
    return html.escape(text, quote=True)
