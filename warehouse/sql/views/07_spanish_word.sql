-- grain: word
-- Frequent Spanish words that aren't English. In Spanish *he* means "I have" (*he visto*), so in a
-- text that is counted as English these words lean to *he*, but say nothing about men.
CREATE OR REPLACE VIEW spanish_word AS
SELECT unnest(regexp_extract_all('
    ahora algo alguien amigo antes aquí así aunque ayer año años bien cada casi como cosa cosas
    creo cuando cuándo cómo decir del desde después dicho donde días dónde ella ellas ellos esa
    esas ese eso esos esta estado estas este esto estos estoy está están gente haber hablado
    había hace hacer hacia hasta hecho hijo hombre hoy leído llegado luego mañana mejor mientras
    misma mismo momento mucha muchas mucho muchos mujer mundo muy más nada noche nosotros
    nuestra nuestro nunca otra otras otro otros para pero poco podido por porque puede puedo
    pues que querido quien quiere quiero quién qué recibido según señor señora sido siempre sino
    sobre soy sé sí sólo también tanto tengo tenido tiempo tiene toda todas todavía todo todos
    trabajo tú una unas unos usted ustedes veces verdad vez vida visto vivido él
', '\S+')) AS word;
