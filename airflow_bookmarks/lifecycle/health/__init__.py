"""The health of jobs: `core.health` judges what is looked up here.

job       one job: all that is known of it
listed    all jobs of a namespace, from their heads and what they read alone
recorded  keeps what was found in the state table, for lists of very many jobs
"""
