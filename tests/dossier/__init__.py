"""The dossier: docs/assurance.md, made from committed records of runs, and the commands that repeat those runs."""
