"""PostgreSQL as this product stores in it: every text and every JSON value comes back exactly as it was given."""
