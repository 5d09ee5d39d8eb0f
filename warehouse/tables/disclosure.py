"""Tables of disclosure: gendered words in pairs, and how likely each is after a prompt."""

from __future__ import annotations

from warehouse.columns import table

TABLES = (
    table(
        "attribute_pair",
        "The pairs of gendered words that GAS, GLD and ADD are measured with.",
        "word_list pair",
        "word_list",
        """
        word_list: text -- name of the list
        pair: int -- place in the list, from 1
        female: text -- female word; may be in several pairs
        male: text -- male word; the same
        source: text -- where the list comes from
        run_id: text -- run that wrote it
        """,
    ),
    table(
        "pronoun_probability",
        "How likely a model goes on from a prompt with each gendered word.",
        "probe_set model_key word_list prompt_id word",
        "probe_set model_key word_list",
        """
        probe_set: text -- set of prompts
        model_key: text -- whose probability, see `model`
        model: text -- hub id or name of a local model
        word_list: text -- list that the word is of, see `attribute_pair`
        prompt_id: text -- prompt
        word: text -- the word as the list has it
        gender: text -- `f` or `m`
        probability: float [probability] -- that the text goes on with the word or its capital form
        n_variants: int -- of these two the ones that the model's vocabulary can spell
        text_id: text -- hash of the prompt and of all that its words were tried as
        run_id: text -- run that computed it
        """,
    ),
)
