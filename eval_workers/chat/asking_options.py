"""Options for commands that send requests to a server: model, server and budget."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.chat.client import DEFAULT_URL, Server, checked_url
from plumbline.eval_workers.chat.requests import ChatModel, TokenLimit
from plumbline.warehouse.options import MOST, STRICT


@dataclass(frozen=True, config=STRICT)
class ServerOptions:
    """Options for requests to a server. ``ChatModel`` explains ``token_limit``.

    Raises ``UsageProblem`` if ``checked_url`` refuses the address.
    """

    base_url: Annotated[str, Field(description="Base URL of the server.")] = DEFAULT_URL
    timeout_s: Annotated[
        float,
        Field(
            gt=0,
            le=86_400,
            allow_inf_nan=False,
            description="Seconds to wait for a reply before the request fails.",
        ),
    ] = 120.0
    concurrency: Annotated[
        int, Field(gt=0, le=1_024, description="Number of requests to send at the same time.")
    ] = 8
    token_limit: Annotated[
        TokenLimit, Field(description="Name of the request parameter that limits a reply's length.")
    ] = "max_tokens"
    max_requests: Annotated[
        int | None, Field(ge=0, le=MOST, description="Maximum number of requests over all runs.")
    ] = None
    max_tokens: Annotated[
        int | None, Field(ge=0, le=MOST, description="Maximum number of tokens over all runs.")
    ] = None

    def __post_init__(self) -> None:
        if self.base_url:
            checked_url(self.base_url)  # refuses secrets, because options are stored with the run

    def server(self, base_url: str = "") -> Server:
        """Return the server. ``base_url``, if given, replaces the address in the options."""
        return Server(
            base_url or self.base_url,
            self.timeout_s,
            self.concurrency,
            max_requests=self.max_requests,
            max_tokens=self.max_tokens,
        )


@dataclass(frozen=True, config=STRICT)
class AskingOptions(ServerOptions):
    """Options for requests to one model. ``ChatModel.seed`` explains ``send_seed``."""

    model: Annotated[str, Field(description="Name of the model on the server.")] = ""
    send_seed: Annotated[bool, Field(description="Send a seed with each request.")] = True

    def __post_init__(self) -> None:
        checked_url(self.base_url)  # an empty address is an error here

    def chat_model(self) -> ChatModel:
        return ChatModel(self.model, 0 if self.send_seed else None, self.token_limit)
