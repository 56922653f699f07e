"""Results for people and programs: blocks, then terminal, Markdown or JSON. No arithmetic."""

from memfit.render.blocks import Bar, Bars, Block, Code, Column, Heading, Table, Text, Tone
from memfit.render.check import (
    check_blocks,
    check_github,
    check_json,
    check_sarif,
    page_blocks,
    page_json,
)
from memfit.render.compare import compare_blocks, compare_json
from memfit.render.demo import demo_blocks, demo_json, system_demo_blocks, system_demo_json
from memfit.render.device import every_snapshot_block, snapshot_blocks, snapshot_json
from memfit.render.explain import explain_blocks, explain_json
from memfit.render.explain_short import explain_short
from memfit.render.html.embedded import Report, is_report, read_report
from memfit.render.html.page import (
    check_data,
    check_pictures,
    drawing_script,
    notebook_frame,
    to_html,
)
from memfit.render.live_page import live_page, run_parts
from memfit.render.markdown import to_markdown
from memfit.render.memory_request import jobs_blocks, jobs_json, request_blocks, request_json
from memfit.render.metrics import live_metrics, trace_openmetrics
from memfit.render.nodes import nodes_blocks, nodes_json
from memfit.render.optimize import optimize_blocks, optimize_json
from memfit.render.plan import plan_blocks, plan_json
from memfit.render.profile import profile_blocks, profile_json, profile_line, profile_report
from memfit.render.sweep import sweep_blocks, sweep_json, sweep_line
from memfit.render.system_document import system_document_blocks, system_document_json
from memfit.render.terminal import to_terminal
from memfit.render.trace import forecast_text, live_line, trace_blocks, trace_json, trace_summary
from memfit.render.trace_csv import trace_csv
from memfit.render.watch import frame_blocks, frame_json, frame_line, frame_summary
