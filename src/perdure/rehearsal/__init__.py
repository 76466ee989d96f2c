"""What is rehearsed of old tasks while a new one is learnt; each file here is one kind of rehearsal."""
