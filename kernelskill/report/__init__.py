"""What people read: live progress, tables, explanations. Everything here renders; nothing decides."""
