mod churn;
mod filter;
mod machines;
mod model;
