"""The only room that opens a database: engine, schema, migrations, transactions, full-text search. It knows no station's words."""
