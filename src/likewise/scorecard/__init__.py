"""What people read of a scorecard and take away: tables, pictures, prices, whole points, notices and files."""
