"""Options of commands that send requests to a server: the model, the server and the budget."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.chat.budget import Budget
from plumbline.eval_workers.chat.client import DEFAULT_URL, Server, checked_url
from plumbline.eval_workers.chat.requests import ChatModel, TokenLimit
from plumbline.warehouse.options import MOST, STRICT


@dataclass(frozen=True, config=STRICT)
class ServerOptions:
    """The server and the budget for requests to it. For ``token_limit``, see ``ChatModel``.

    Raises ``UsageProblem`` for an address that ``checked_url`` refuses.
    """

    base_url: Annotated[str, Field(description="Address of the server.")] = DEFAULT_URL
    timeout_s: Annotated[
        float,
        Field(gt=0, le=86_400, allow_inf_nan=False, description="Seconds until a request fails."),
    ] = 120.0
    concurrency: Annotated[int, Field(gt=0, le=1_024, description="Requests at the same time.")] = 8
    token_limit: Annotated[
        TokenLimit, Field(description="The server's name for the limit on tokens.")
    ] = "max_tokens"
    max_requests: Annotated[int | None, Field(ge=0, le=MOST, description="Limit on requests.")] = (
        None
    )
    max_tokens: Annotated[int | None, Field(ge=0, le=MOST, description="Limit on tokens.")] = None

    def __post_init__(self) -> None:
        if self.base_url:
            checked_url(self.base_url)  # stored with the run, so it must not hold a secret

    def server(self, base_url: str = "") -> Server:
        """Return the server at ``base_url``, or at the options' address if it is empty."""
        return Server(base_url or self.base_url, self.timeout_s, self.concurrency)

    def budget(self) -> Budget:
        """Return the limits on requests and tokens."""
        return Budget(self.max_requests, self.max_tokens)


@dataclass(frozen=True, config=STRICT)
class AskingOptions(ServerOptions):
    """Options for asking one model of a server. For ``send_seed``, see ``ChatModel.seed``."""

    model: Annotated[str, Field(description="Model, by the server's name for it.")] = ""
    send_seed: Annotated[bool, Field(description="Send the server a seed.")] = True

    def __post_init__(self) -> None:
        checked_url(self.base_url)  # an empty address is refused too

    def chat_model(self) -> ChatModel:
        """Return the model to send requests to."""
        return ChatModel(self.model, 0 if self.send_seed else None, self.token_limit)
