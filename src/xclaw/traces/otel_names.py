"""Every name that an exported span carries: OpenTelemetry's GenAI conventions, and xclaw's own.

The conventions are still called unstable; when they rename something, it is renamed here.
"""

SCOPE = "xclaw"
SERVICE_NAME = "service.name"

INVOKE_AGENT = "invoke_agent"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_TOKEN_S = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION_ID = "gen_ai.conversation.id"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"

TOTAL_INPUT_TOKENS = "gen_ai.aggregated_usage.input_tokens"
"""Of an agent and everything below it. Not under `gen_ai.usage`: receivers add that up over spans."""
TOTAL_OUTPUT_TOKENS = "gen_ai.aggregated_usage.output_tokens"

SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
INPUT_VALUE = "input.value"
"""What viewers show in their list of traces; so is OUTPUT_VALUE."""
OUTPUT_VALUE = "output.value"

SESSION_ID = "session.id"
"""The root's session on every span: what viewers group traces by."""
RUN_ID = "xclaw.run_id"
ROOT_ID = "xclaw.root_id"
TURN = "xclaw.turn"
OUTCOME = "xclaw.outcome"
"""A run's outcome; `open` while it has none."""
SCRIPTED = "xclaw.scripted"
COST_USD = "xclaw.cost_usd"
"""US dollars of one model call; absent when the price is unknown."""
TOTAL_COST_USD = "xclaw.total_cost_usd"
"""US dollars of a run and everything below it; absent when a part is unknown."""
ESTIMATED = "xclaw.usage.estimated"
COMPACTION = "xclaw.compaction"
"""On a model call that wrote the summary of a conversation."""

INTERRUPTED = "interrupted"
"""The `error.type` of what a crash cut off."""
TOOL_FAILED = "tool_failed"
OTHER_ERROR = "_OTHER"

PROVIDERS = {
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "grok": "x_ai",
    "mistral": "mistral_ai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "x-ai": "x_ai",
    "xai": "x_ai",
}
"""Providers that the conventions call otherwise; all others keep their name."""
