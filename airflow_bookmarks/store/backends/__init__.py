"""The tables: DynamoDB, and SQLite for one machine."""
