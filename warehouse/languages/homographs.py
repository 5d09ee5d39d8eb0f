"""English target words that mean something else in another language.

A corpus's text in that language is counted, too: in Spanish *he visto* (I have seen), *visto*
co-occurs with *he*.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Homograph:
    """The other language, the word's meaning there, and frequent words that English lacks."""

    language: str
    meaning: str
    words: frozenset[str]


#: Homographs by target word. They explain the Pile's words that lean furthest to *he*.
HOMOGRAPHS = {
    "he": Homograph(
        "Spanish",
        "“I have”, of haber",
        frozenset(
            """
            ahora algo alguien amigo antes aquí años así aunque ayer año bien cada casi como cosa
            cosas creo cuando cuándo cómo decir del desde después dicho donde dónde días ella ellas
            ellos ese esa eso esos esas esta estas este esto estos está están estado estoy gente
            había haber hablado hace hacer hacia hasta hecho hijo hombre hoy leído llegado luego
            mañana mejor mientras mismo misma momento mucho mucha muchos muchas mujer mundo muy nada
            noche nosotros nuestra nuestro nunca otra otras otro otros para pero poco podido porque
            puede puedo pues que querido quiere quiero quien quién qué recibido según señor señora
            sido siempre sino sobre sólo soy sé sí también tanto tenido tengo tiempo
            tiene toda todas todavía todo todos trabajo tú una unas unos usted ustedes verdad vez
            veces vida visto vivido él más por
            """.split()  # noqa: SIM905  (a table of words)
        ),
    )
}
