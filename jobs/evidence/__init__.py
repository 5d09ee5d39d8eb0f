"""Why a word leans: its documents, their sources and copies, and the sentences around it."""
