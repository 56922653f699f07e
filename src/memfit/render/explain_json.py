"""An explanation as JSON. Bytes are integers."""

from __future__ import annotations

from typing import Any

from memfit.model import Explanation, Grown, Inside, Part, ProcessView
from memfit.render.component_json import SCHEMA, component_json


def explain_json(explanation: Explanation) -> dict[str, Any]:
    """What `memfit explain --format json` prints."""
    ledger = explanation.ledger
    return {
        "schema": SCHEMA,
        "kind": "explain",
        "pid": explanation.pid,
        "command": explanation.main.command,
        "pss_bytes": explanation.pss_bytes,
        "named_share": round(explanation.named_share, 6),
        "limit_bytes": explanation.limit.bytes,
        "limit_source": explanation.limit.source,
        "headroom_bytes": explanation.headroom_bytes,
        "fits": explanation.pss_bytes <= explanation.limit.bytes,
        "age_seconds": round(explanation.main.seconds, 3),
        "huge_bytes": explanation.huge_bytes,
        "swapped_bytes": explanation.swapped_bytes,
        "device_bytes": dict(explanation.device_bytes),
        "components": [component_json(ledger, c) for c in ledger.components],
        "processes": [_process(p) for p in explanation.processes],
        "settings": [
            {"name": s.name, "configured": s.configured, "used": s.used}
            for s in explanation.settings
        ],
        "inside": None if explanation.inside is None else _inside(explanation.inside),
        "growth_seconds": round(explanation.growth_seconds, 3),
        "growth": [_grown(g) for g in explanation.growth],
        "notes": list(explanation.notes),
        "seconds": round(explanation.seconds, 3),
    }


def _process(process: ProcessView) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "parent": process.parent,
        "name": process.name,
        "command": process.command,
        "age_seconds": round(process.seconds, 3),
        "rss_bytes": process.rss,
        "pss_bytes": process.pss,
        "private_bytes": process.private,
        "reserved_bytes": process.reserved,
        "threads": [
            {
                "pool": pool.name,
                "threads": pool.threads,
                "names": list(pool.names),
                "bytes": pool.resident,
                "reserved_bytes": pool.reserved,
            }
            for pool in process.pools
        ],
        "parts": [_part(part) for part in process.parts],
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "layer": part.layer.value,
        "bytes": part.bytes,
        "reserved_bytes": part.reserved,
        "private_bytes": part.private,
    }


def _inside(inside: Inside) -> dict[str, Any]:
    return {
        "held_share": round(inside.held_share, 6),
        "seconds": round(inside.seconds, 3),
        "longest_hold_seconds": round(inside.longest_hold_seconds, 6),
        "readings": {
            "taken": inside.taken,
            "dropped": inside.dropped,
            "first_held_share": round(inside.first_held_share, 6),
            "processes": [
                {
                    "pid": r.pid,
                    "held_shares": [round(share, 6) for share in r.held_shares],
                    "kept": r.kept,
                }
                for r in inside.readings
            ],
        },
        "pids": list(inside.asked),
        "pools": dict(inside.pools),
        "holders": [
            {
                "path": h.path,
                "kind": h.kind.value,
                "bytes": h.bytes,
                "reserved_bytes": h.reserved,
                "count": h.count,
                "what": h.what,
                "also": list(h.also),
                "pid": h.pid,
            }
            for h in inside.holders
        ],
        "repeated": [
            {
                "kind": r.kind,
                "holders": list(r.holders),
                "saves_bytes": r.saves_bytes,
                "message": r.message,
            }
            for r in inside.repeated
        ],
        "notes": list(inside.notes),
    }


def _grown(grown: Grown) -> dict[str, Any]:
    return {
        "name": grown.name,
        "bytes": grown.bytes,
        "bytes_per_second": round(grown.bytes_per_second, 1),
        "now_bytes": grown.after,
    }
