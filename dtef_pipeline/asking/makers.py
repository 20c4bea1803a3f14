"""The company that made a model, derived from its model string; not the provider that serves it.

`openrouter/anthropic/claude-3.5-haiku`, `bedrock/anthropic.claude-3-haiku` and `anthropic/claude-3-5-haiku` are all by Anthropic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple


class Maker(NamedTuple):
    """A company that makes models, with its names and those of its models."""

    name: str
    folders: tuple[str, ...]
    """Parts of model strings that identify the company, such as `meta-llama`."""
    families: tuple[str, ...]
    """Prefixes of its models' names."""
    product_names: tuple[str, ...] = ()
    """Names of the company and its models that rarely mean anything else, as people write them."""
    everyday_names: tuple[str, ...] = ()
    """Names that are also everyday words: a text with such a word may not be about the maker."""


KNOWN_MAKERS = (
    # Before OpenAI, whose family has the same prefix.
    Maker("EleutherAI", ("eleutherai",), ("gpt-neo", "gpt-j-", "pythia"), ("EleutherAI", "GPT-NeoX", "GPT-J"), ("Pythia",)),
    Maker(
        "OpenAI",
        ("openai",),
        ("gpt", "chatgpt", "o1", "o3", "o4", "davinci", "codex"),
        ("OpenAI", "Open AI", "ChatGPT", "GPT", "text-davinci", "o1-mini", "o1-preview", "o1-pro", "o3-mini", "o3-pro", "o4-mini"),
        ("Codex",),
    ),
    Maker("Anthropic", ("anthropic",), ("claude",), ("Anthropic", "Claude", "克劳德"), ("Opus", "Sonnet", "Haiku")),
    Maker(
        "Google",
        ("google", "gemini"),
        ("gemini", "gemma", "palm"),
        ("Google", "DeepMind", "Gemini", "Gemma", "谷歌", "グーグル", "구글", "गूगल"),
        ("Bard", "PaLM"),
    ),
    # Its models are named after their base models.
    Maker("NVIDIA", ("nvidia",), ("nemotron", "llama-3.1-nemotron", "llama-3.3-nemotron"), ("NVIDIA", "Nemotron")),
    Maker(
        "Meta",
        ("meta-llama", "meta", "facebook"),
        ("llama", "meta-llama", "codellama", "code-llama"),
        ("Meta AI", "meta-llama", "Llama", "CodeLlama", "Code Llama"),
        ("Meta", "Facebook"),
    ),
    Maker(
        "Mistral AI",
        ("mistralai", "mistral"),
        ("mistral", "mixtral", "magistral", "ministral", "codestral", "pixtral", "devstral"),
        ("Mistral", "Mixtral", "Magistral", "Ministral", "Codestral", "Pixtral", "Devstral"),
    ),
    Maker("DeepSeek", ("deepseek", "deepseek-ai"), ("deepseek",), ("DeepSeek", "深度求索")),
    Maker("xAI", ("x-ai", "xai"), ("grok",), ("xAI", "x-ai", "Grok")),
    Maker("Alibaba", ("qwen", "alibaba"), ("qwen", "qwq", "tongyi"), ("Alibaba", "Qwen", "QwQ", "Tongyi", "通义千问", "阿里巴巴", "阿里云")),
    Maker("Cohere", ("cohere", "cohereforai"), ("command", "c4ai", "aya"), ("Cohere", "C4AI"), ("Command", "Aya")),
    Maker("Microsoft", ("microsoft",), ("phi-", "wizardlm", "mai-"), ("Microsoft", "WizardLM", "微软"), ("Copilot", "Phi")),
    Maker("Amazon", ("amazon",), ("nova-", "titan-"), (), ("Amazon", "Nova", "Titan")),
    Maker("Moonshot AI", ("moonshotai", "moonshot"), ("kimi", "moonshot"), ("Kimi", "Moonshot AI", "月之暗面"), ("Moonshot",)),
    Maker("Zhipu AI", ("z-ai", "zai", "zai-org", "thudm", "zhipu"), ("glm", "chatglm"), ("ChatGLM", "GLM", "Zhipu", "智谱")),
    Maker("MiniMax", ("minimax", "minimaxai"), ("minimax", "abab"), ("MiniMax",)),
    Maker("01.AI", ("01-ai", "01.ai"), ("yi-",), ("01.AI", "01-ai"), ("Yi",)),
    Maker("AI21 Labs", ("ai21",), ("jamba", "j2-", "jurassic"), ("AI21", "Jamba"), ("Jurassic",)),
    Maker("Nous Research", ("nousresearch",), ("hermes", "nous-hermes"), ("Nous Research",), ("Hermes",)),
    Maker("Allen Institute for AI", ("allenai",), ("olmo", "tulu"), ("AllenAI", "OLMo"), ("Tulu",)),
    Maker("IBM", ("ibm", "ibm-granite", "watsonx"), ("granite",), (), ("IBM", "Granite", "watsonx")),
    Maker("Perplexity", ("perplexity",), ("sonar",), (), ("Perplexity", "Sonar")),
    Maker("Reka", ("reka", "rekaai"), ("reka",), ("Reka",)),
    Maker(
        "Hugging Face", ("huggingfacetb", "huggingfaceh4"), ("smollm", "zephyr", "starchat"), ("SmolLM", "StarChat", "HuggingFaceH4"),
        ("Hugging Face", "Zephyr"),
    ),
    Maker("Together AI", ("togethercomputer",), ("redpajama",), ("Together AI", "RedPajama"), ("Together",)),
    Maker("LMSYS", ("lmsys",), ("vicuna", "fastchat", "koala"), ("LMSYS", "LM Sys", "FastChat"), ("Vicuna", "Koala")),
    Maker("Databricks", (), ("dolly", "dbrx"), ("Databricks", "DBRX"), ("Dolly",)),
    Maker("MosaicML", ("mosaicml",), ("mpt-",), ("MosaicML", "Mosaic ML"), ("MPT",)),
    Maker("TII", ("tiiuae",), ("falcon",), ("tiiuae",), ("TII", "Falcon")),
    Maker("Aleph Alpha", ("aleph-alpha", "aleph_alpha", "alephalpha"), ("luminous",), ("Aleph Alpha",), ("Luminous",)),
    Maker("Stability AI", ("stabilityai",), ("stablelm",), ("Stability AI", "StableLM"), ("Stable Beluga",)),
    Maker("LAION", ("openassistant", "laion"), ("oasst", "open-assistant"), ("LAION", "OpenAssistant", "Open-Assistant")),
    Maker("BigCode", ("bigcode",), ("starcoder", "starcoderchat"), ("BigCode", "StarCoder")),
    Maker("Stanford", (), ("alpaca",), (), ("Stanford", "Alpaca")),
)  # fmt: skip
"""A model belongs to the first maker whose family is a prefix of its name, or else to the maker whose folder its string contains."""

FURTHER_MAKERS = (
    Maker("OpenAI", ("openai",), ("gpt", "chatgpt"), ("챗GPT", "ЧатГПТ")),
    Maker("Anthropic", ("anthropic",), ("claude",), ("クロード", "클로드")),
    Maker("Google", ("google", "gemini"), ("gemini",), ("ジェミニ", "제미나이", "双子座模型")),
    Maker("Mistral AI", ("mistralai", "mistral"), ("mistral", "mixtral"), ("Le Chat",)),
    Maker("Alibaba", ("qwen", "alibaba"), ("qwen", "qwq", "tongyi"), ("千问", "千問", "通义", "通義千問", "Tongyi Qianwen")),
    Maker("Zhipu AI", ("z-ai", "zai", "zai-org", "thudm", "zhipu"), ("glm", "chatglm"), ("Z.ai", "智谱清言", "智譜", "清言")),
    Maker("MiniMax", ("minimax", "minimaxai"), ("minimax", "abab"), ("稀宇",)),
    Maker("xAI", ("x-ai", "xai"), ("grok",), ("x.ai",)),
    Maker("01.AI", ("01-ai", "01.ai"), ("yi-",), ("零一万物",)),
    Maker("Baidu", ("baidu",), ("ernie",), ("Baidu", "ERNIE", "ERNIE Bot", "Wenxin", "文心一言", "文心", "百度")),
    Maker(
        "Yandex", ("yandex",), ("yandexgpt", "yandex"),
        ("Yandex", "YandexGPT", "Яндекс", "Яндекса", "Яндексу", "Яндексом", "Яндексе", "ЯндексGPT"),
    ),
    Maker("Tencent", ("tencent",), ("hunyuan",), ("Tencent", "Hunyuan", "腾讯", "混元")),
    Maker("ByteDance", ("bytedance", "bytedance-seed"), ("doubao", "seed-"), ("ByteDance", "Doubao", "豆包", "字节跳动")),
    Maker("Sber", ("sber", "ai-sage"), ("gigachat",), ("Sber", "GigaChat", "Сбер", "Сбера", "Сбером", "ГигаЧат")),
    Maker("Naver", ("naver", "naver-hyperclovax"), ("hyperclova", "clova"), ("Naver", "HyperCLOVA", "네이버", "하이퍼클로바")),
    Maker("LG AI Research", ("lgai-exaone",), ("exaone",), ("LG AI Research", "EXAONE", "엑사원")),
    Maker("Upstage", ("upstage",), (), ("업스테이지",)),
    Maker("StepFun", ("stepfun", "stepfun-ai"), ("step-",), ("StepFun", "阶跃星辰")),
    Maker("iFLYTEK", ("iflytek",), (), ("iFLYTEK", "讯飞星火", "讯飞")),
    Maker("Baichuan", ("baichuan", "baichuan-inc"), ("baichuan",), ("Baichuan", "百川")),
    Maker("Shanghai AI Laboratory", ("internlm", "opengvlab"), ("internlm", "internvl"), ("InternLM", "书生")),
)  # fmt: skip
"""Further makers, and further names of those in `KNOWN_MAKERS`, to remove from texts. They do not determine a model's maker, so that stored
makers stay valid."""

EVERYDAY_NAMES = frozenset({
    "alpaca", "bard", "codex", "command", "copilot", "dolly", "falcon", "granite", "guanaco", "haiku", "hermes", "koala", "luminous", "meta",
    "moonshot", "nova", "opus", "palm", "perplexity", "phi", "platypus", "sonar", "sonnet", "stanford", "titan", "together", "vicuna",
    "weaver", "zephyr",
})  # fmt: skip
"""Names of makers and models that in lower case are mostly ordinary words: come together, the following command."""

SERVING = (
    "azure", "azure_ai", "bedrock", "cerebras", "cloudflare", "databricks", "deepinfra", "featherless_ai", "fireworks_ai", "friendliai",
    "groq", "heroku", "hosted_vllm", "huggingface", "hyperbolic", "lambda_ai", "litellm_proxy", "llamafile", "lm_studio", "local",
    "nebius", "nscale", "nvidia_nim", "ollama", "ollama_chat", "openai_like", "openrouter", "ovhcloud", "replicate", "sagemaker",
    "sambanova", "snowflake", "together_ai", "vertex_ai", "vllm", "xinference",
)  # fmt: skip
"""LiteLLM providers that serve models of other companies."""


@lru_cache(maxsize=4096)
def find_maker(model: str, *, own_server: bool = False) -> str | None:
    """Return the company that made a model.

    Args:
        model: a model string or a variant: `openrouter/openai/gpt-4o`, `openai/gpt-4o[temperature=0]`.
        own_server: whether the model has its own server address; then the provider names the protocol, not the maker.

    Returns:
        The name in `KNOWN_MAKERS`, or else the unknown folder of the string (`openrouter/acme/x`), or None if nothing
        identifies the maker. Computed models (`baseline/...`) have none.
    """
    provider, *parts = model.partition("[")[0].split("@")[0].lower().split("/")
    if not parts or provider == "baseline":
        return None
    folders, name = parts[:-1], parts[-1]
    # As in bedrock/us.anthropic.claude-3-haiku, and in a fine-tuned openai/ft:gpt-4o-mini:acme.
    prefixes = re.findall(r"[a-z][a-z0-9-]*(?=\.)", name)
    begins = [name, name.rpartition(".")[2] if prefixes else name, name.removeprefix("ft:")]
    for maker in KNOWN_MAKERS:
        if any(begin.startswith(family) for begin in begins for family in maker.families):
            return maker.name
    for part in (*reversed(folders), *prefixes, *(() if own_server else (provider,))):
        for maker in KNOWN_MAKERS:
            if part in maker.folders:
                return maker.name
    return next((part for part in reversed(folders) if part not in ("models", "accounts", "fireworks")), None)


def find_makers_in_name(name: str, makers: Sequence[Maker] = KNOWN_MAKERS) -> tuple[Maker, ...]:
    """Return the makers to which the name of a model or maker belongs, in any spelling: `GPT 4`, `lmsys/vicuna-7b`, `Cohere`."""
    parts = [re.sub(r"[\s_-]+", "-", part).strip("-") for part in name.lower().split("/")]
    matches = []
    for maker in makers:
        names = {
            re.sub(r"[\s_-]+", "-", alias.lower())
            for alias in (maker.name, *maker.folders, *maker.product_names, *maker.everyday_names)
        }
        if not names.isdisjoint(parts) or any(_is_of_family(part, family) for part in parts for family in maker.families):
            matches.append(maker)
    return tuple(matches)


def _is_of_family(name: str, family: str) -> bool:
    """Return whether the name begins with the family as a word: command-light belongs to command, commander does not."""
    return name == family.rstrip("-") or (name.startswith(family) and not name[len(family.rstrip("-"))].isalpha())


def get_known_maker(name: str) -> Maker | None:
    """Return the entry of `KNOWN_MAKERS` with this name, or None."""
    return next((maker for maker in KNOWN_MAKERS if maker.name == name), None)
