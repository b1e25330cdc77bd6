"""What is taken out of errors: a secret never survives, and text without one stays as it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_bookmarks.core.text.redaction import CUT, MARK, MAX_ERROR, has_user_info, redacted, stored_error
from tests.thorough import examples

_LETTERS = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
# Long enough to be found nowhere else in the text. What a shell or a URL has to quote is left out but for `/`, `@`.
SECRETS = st.builds(
    lambda first, inner, last: first + inner + last,
    st.sampled_from("xyzXYZ"),
    st.text(_LETTERS + "/@+=!$%^*_-.~:", min_size=12, max_size=40),
    st.text(_LETTERS, min_size=2, max_size=2),
)
# Of examples there are enough: the places are many.
_however_busy = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
KEY = "AKIAIOSFODNN7EXAMPLE"
PLACES = (
    "jdbc:postgresql://etl:{}@db:5432/lake?ssl=true",
    "Invalid URL 'mongodb+srv://etl:{}@one,two/db', cause: refused",
    "redis://:{}@cache:6379/0",
    "amqp://guest:{}@queue//",
    "s3a://AKIA:{}@lake/raw/a.csv",
    "jdbc:oracle:thin:scott/{}@//db:1521/service",
    "jdbc:sqlserver://db:1433;databaseName=lake;user=sa;password={};encrypt=true",
    "jdbc:mysql://db/lake?user=etl&password={}&useSSL=true",
    "fs.s3a.secret.key={}",
    "fs.azure.account.key.lake.dfs.core.windows.net={}",
    "fs.azure.sas.raw.lake={}",
    "spark.hadoop.javax.jdo.option.ConnectionPassword={}",
    "Map(user -> etl, password -> {}, driver -> x)",
    "{{user=etl, pwd={}, driver=x}}",
    '{{"user": "etl", "password": "{}", "driver": "x"}}',
    "{{'user': 'etl', 'api_key': '{}'}}",
    r"{{\"token\": \"{}\", \"user\": \"etl\"}}",
    "password: {}",
    "spark-submit --conf spark.x.token={} app.py",
    "curl --api-key {} https://host",
    "Authorization: Bearer {}",
    "-H 'Authorization: Basic {}' -v",
    "X-Auth-Token: {}",
    "Cookie: session={}",
    "https://b.s3.amazonaws.com/k?X-Amz-Signature={}&X-Amz-Expires=3600",
    "https://b.s3.amazonaws.com/k?X-Amz-Security-Token={}&X-Amz-Expires=3600",
    "https://b.s3.amazonaws.com/k?X-Amz-Credential={}&X-Amz-Expires=3600",
    "https://lake.blob.core.windows.net/raw?sv=2024&sig={}&se=2026",
    "DefaultEndpointsProtocol=https;AccountName=lake;AccountKey={};EndpointSuffix=core.windows.net",
    "Endpoint=sb://x/;SharedAccessKeyName=root;SharedAccessKey={}",
    "CREATE USER etl IDENTIFIED BY '{}'",
    "ALTER ROLE etl PASSWORD '{}'",
    "<property><name>fs.s3a.secret.key</name><value>{}</value></property>",
    "<password>{}</password>",
    "AWS_SECRET_ACCESS_KEY={}",
    "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
    "snowflake://etl@example.com:{}@account/lake",
    "Array((spark.app.name,copy), (spark.hadoop.fs.s3a.secret.key,{}), (x,y))",
    "Map(user,etl) (password,{})",
    "[('spark.app.name', 'copy'), ('spark.hadoop.fs.s3a.secret.key', '{}')]",
    '{{"env": [{{"name": "DB_PASSWORD", "value": "{}"}}]}}',
    "env:\n  - name: DB_PASSWORD\n    value: {}",
    '<add key="password" value="{}"/>',
    '{{"password":\n    "{}"}}',
    '"{{""password"": ""{}"", ""user"": ""etl""}}"',
    "{{&quot;password&quot;: &quot;{}&quot;}}",
    "connect(password=b'{}')",
    "pw={}",
    "Ocp-Apim-Subscription-Key: {}",
    "COPY INTO t CREDENTIALS ACCESS_KEY_ID 'x' SECRET_ACCESS_KEY '{}'",
    "-----BEGIN OPENSSH PRIVATE KEY-----\n{}",
    # options of programs
    "curl -u etl:{} https://host/x",
    "curl -uetl:{} https://host/x",
    "curl -fsSLu etl:{} https://host/x",
    "curl --user etl:{} https://host/x",
    "curl --user=etl:{} https://host/x",
    "curl --proxy-user 'etl:{}' https://host/x",
    'curl -k -u "etl:{}" https://host/x',
    "Command '['curl', '-u', 'etl:{}', 'https://host/x']' returned non-zero exit status 22.",
    "Command '['sshpass', '-p', '{}', 'ssh', 'host']' returned non-zero exit status 5.",
    "List(curl, -u, etl:{}, https://host/x)",
    "wget --http-user=etl --http-password={} https://host",
    "sshpass -p {} ssh host",
    "sshpass -p{} ssh host",
    "mysql -u etl -p{} -h db",
    "mysql -uetl -p'{}' shop",
    "/usr/bin/mysqldump -p{} shop | redis-cli -p 6379 ping",
    "mysql shop | redis-cli -p 6379 -a {} ping",
    "mongosh -u etl -p {} host",
    "docker login -u etl -p {} registry",
    "beeline -u jdbc:hive2://host -n etl -p {}",
    "smbclient -U etl%{} //host/x",
    "lftp -u etl,{} host",
    "openssl rsa -passin pass:{} -in key.pem",
    "sqlplus etl/{}@db",
    "ldapsearch -D etl -w {} -b x",
    "PGPASSWORD={} psql",
    "MYSQL_PWD={} mysql",
    "keytool -storepass {} -list",
    "keytool -srcstorepass {} -list",
    "keytool -keypass '{}' -list",
    "vault -token {} read",
    # keys with a blank before their value
    "keyStorePassword {}",
    "ssl.trustStorePassword {}",
    "the store with keyStorePassword {} was refused",
    "spark.ssl.keyPassword            {}",
    "fs.s3a.secret.key {}",
    "fs.azure.account.key.lake.dfs.core.windows.net {}",
    "AccountKey {}",
    "machine host login etl password {}",
    # YAML
    "password: |\n  {}\nuser: etl",
    "password: |-\n\n  first\n\n  {}\nuser: etl",
    "db:\n    password: >+  # folded\n      {}\n    user: etl",
    "- password: |\n    {}\n  user: etl",
    "db_password: !vault |\n  $ANSIBLE_VAULT;1.1\n  {}\nuser: etl",
    "password:\n  {}\nuser: etl",
    "tokens:\n  - {}\nuser: etl",
    'password: "first\n  {}"\nuser: etl',
    "password: 'first\n  {}'\nuser: etl",
    "password: 'it''s {}'",
    "bad document 'password: |\\n  {}\\nuser: etl\\n'",
    # headers, addresses
    "Authorization Basic {}",
    "SharedAccessSignature sr=x&sig={}&se=1",
    "AWS4-HMAC-SHA256 Credential=x/20130524/eu/s3/aws4_request, SignedHeaders=host, Signature={}",
    "x-amz-security-token: {}",
)
HARMLESS = (
    "s3a://lake/raw/design=3/year=2013/part-0.csv",
    "abfss://raw@lake.dfs.core.windows.net/a.csv",
    "hdfs://nn:8020/lake/a@b.csv is gone",
    "file:///lake/x:y@z.csv",
    "jdbc:oracle:thin:@//db:1521/service",
    "jdbc:postgresql://db:5432/lake?user=etl",
    "SELECT token, password, secret FROM people WHERE id = 7 AND name LIKE '%@%'",
    "manual__2026-01-01T00:00:00+00:00",
    "flights/scheduled__2026-01-01T00:00:00+00:00/clean/3",
    "An error occurred (ExpiredToken) when calling ListObjectsV2: The provided token has expired.",
    "org.x.PasswordExpiredException: the account was locked",
    "Unrecognized token 'abc': was expecting ('true', 'false' or 'null')",
    "[UNRESOLVED_COLUMN] A column with name `pass` cannot be resolved. Did you mean: [`passes`]?",
    "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake",
    "Path does not exist: file:/lake/tokens/a.csv",
    "Basic authentication is off; a Bearer is expected",
    "INSERT INTO people (password, name, secret) VALUES",
    "Kafka of kafka://etl@one:9092,two:9092/@x",
    '{"name": "token", "type": "string"}',
    'secrets "db-creds" not found; secret "db" is there',
    "sha256 9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab",
    # counts and switches
    "tokens: 512",
    "max_tokens=4096",
    "max_tokens=4096, temperature=1",
    '{"total_tokens": 12, "prompt_tokens": 3}',
    "spark.x.tokenCount=3",
    "csrf_token_enabled=false",
    "password=None, user=etl",
    # words that only begin like a secret
    "keyspace: shop",
    "private_keyspace=shop",
    "tokenizer=standard",
    "secretary: Smith",
    "primary_key=id",
    "compass=3",
    # partitions of a path
    "s3://lake/raw/token=abc/part-0.parquet",
    "Path does not exist: s3://lake/raw/token=abc",
    "file:/data/access_token=abc/api_key=7/x.csv, file:/data/access_token=abd/api_key=7/x.csv",
    "hdfs://nn:8020/lake/year=2026/password=1/",
    "['/data/pass=3/a.csv']",
    # schemas and SQL
    "struct<password:string,token:bigint>",
    "root\n |-- password: string (nullable = true)\n |-- id: long (nullable = true)",
    "  access_token BIGINT NOT NULL,\n  user_password VARCHAR(20),\n  token STRING\n",
    "SELECT access_token AS t FROM people ORDER BY access_token LIMIT 100000",
    "unexpected token: SELECT",
    "secret:\n  name: db-creds\n  key: x",
    # options and prose
    "the option --token is missing; -storepass is required, keyStorePassword is not set",
    "fs.s3a.secret.key was not given, and SECRET_KEY has to be",
    "Basic authentication is off, Basic AuthenticationProvider is on",
    "docker run -u 1000:1000 -p 8080:80 image",
    "beeline -u jdbc:hive2://host:10000",
    "date -u +%H:%M:%S",
    "ssh -p 2222 host mkdir -p /tmp/x; ps -p 1234",
    "keytool -keystore /etc/store.jks -list",
    "openssl rsa -passin env:PASS",
    "Missing secrets:\n\tat org.x.Store.read(Store.java:12)",
)


@pytest.mark.parametrize("place", PLACES)
@_however_busy
@given(secret=SECRETS)
def test_secret_does_not_survive(place: str, secret: str) -> None:
    text = f"Py4JJavaError: before\n{place.format(secret)}\nafter"
    told = redacted(text)
    assert secret not in told
    assert secret[-6:] not in told
    assert MARK in told
    assert told.startswith("Py4JJavaError: before\n")
    assert redacted(told) == told


@_however_busy
@given(secret=st.text(_LETTERS + "/+", min_size=40, max_size=40))
@pytest.mark.parametrize("between", [":", " ", ", secret is ", '", "', "\n"])
def test_secret_beside_an_access_key_does_not_survive(between: str, secret: str) -> None:
    told = redacted(f"with {KEY}{between}{secret}.")
    assert KEY not in told
    assert secret not in told


@pytest.mark.parametrize(
    "text",
    ["https%3A%2F%2Fetl%3Ahunter2%40host%2Flake", "https://hooks.slack.com/services/T0/B0/hunter2hunter2",
     "glpat-hunter2hunter2hunter2", "AIzahunter2hunter2hunter2hunter2hunter2", "hvs.hunter2hunter2hunter2hunter2",
     "ya29.hunter2hunter2hunter2", "sk-proj-hunter2hunter2hunter2hunter2hunter2"],
)  # fmt: skip
def test_token_of_a_known_form_does_not_survive(text: str) -> None:
    told = redacted(f"GET {text} failed")
    assert "hunter2" not in told
    assert told.startswith("GET ")
    assert told.endswith(" failed")


@pytest.mark.parametrize(
    "text", ["Basic ZXRsOmh1bnRlcjJodW50ZXIy", "Command: curl -H 'X: Basic ZXRsOmh1bnRlcjJodW50ZXIy'"]
)
def test_user_and_password_in_base64_do_not_survive(text: str) -> None:
    assert "ZXRsOmh1" not in redacted(f"{text} was refused")


def test_what_follows_a_block_of_yaml_stays() -> None:
    text = (
        "before: x\n- db:\n    password: |\n      one\n\n      two\n    user: etl\n    token: 'a\n      b'\n- last: x"
    )
    told = "before: x\n- db:\n    password: ***\n    user: etl\n    token: '***'\n- last: x"
    assert redacted(text) == told


@pytest.mark.parametrize(
    "text",
    ["https://host/raw/token=hunter2/x", "jdbc:x://host/db/password=hunter2", "s3://lake/raw/token=hunter2==/x",
     "installer /password=hunter2", "SELECT /*x*/ token=hunter2"],
)  # fmt: skip
def test_what_only_looks_like_a_partition_does_not_survive(text: str) -> None:
    assert "hunter2" not in redacted(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_text_without_a_secret_stays_as_it_is(text: str) -> None:
    assert redacted(text) == text


@_however_busy
@given(st.lists(st.sampled_from([*PLACES, *HARMLESS, MARK, '"', "'", "\\", ";", "&a=", " ", "\n", "://", "@"])))
def test_redaction_of_what_was_redacted_changes_nothing(parts: list[str]) -> None:
    told = stored_error("".join(part.format("hunter2") if part in PLACES else part for part in parts))
    assert stored_error(told) == told


@_however_busy
@given(st.dictionaries(st.sampled_from(["password", "token", "user"]), st.text(), min_size=1))
def test_json_stays_json(value: dict[str, str]) -> None:
    told = json.loads(redacted(json.dumps(value)))
    assert told.keys() == value.keys()
    assert all(told[name] == MARK for name in told.keys() - {"user"} if value[name])


def test_long_error_is_cut_and_says_where_the_whole_text_is() -> None:
    told = stored_error("x" * 10_000)
    assert len(told) == MAX_ERROR
    assert told.endswith(CUT)
    assert stored_error(told) == told


@_however_busy
@given(st.integers(0, 30))
def test_half_a_secret_at_the_end_of_the_look_does_not_survive(shift: int) -> None:
    filler = "password=" + "b" * (64 * 1024 - 9 - 30 + shift) + "\n"
    assert "hunter" not in stored_error(filler + "jdbc:x://etl:hunter2hunter2@db")


@pytest.mark.seldom
@pytest.mark.parametrize(
    "part",
    ["token", "x://a:", "token>", "-----BEGIN PRIVATE KEY", " --a", 'password=\\"', "AKIA", f"{KEY} ", "eyJ", "sas.",
     "jdbc:oracle:a:", "password=&&&&a", "authorization ", "password ", "http://a@", "(", "(a.token", "(a.token,",
     "name: token ", 'name="a.token" value', "%3A%2F%2F", "%3A%2F%2Fa%3A", '""', 'token=""', "&quot;",
     "token&quot;", "password:\n", "identified with a ", "\\",
     "curl ", "curl -", "curl -u", "-u a", "-u ", "mysql ", "mysql -p", "mysql -p'", "a.token ", "keyStorePassword ",
     "password: |\n", " password: |\n  ", "password: |\n  a\n", "password:\n ", 'password: "a\n ', "password: 'a\n ",
     "password: |\\n ", "password: |\n" + " \n" * 40, "/token=a", "/token=", "tokens=1,", "token-", "basic aaaa",
     "a:b@c", "a.a:", "login a password ", "sqlplus a/", "-pass ", "-token ", "==", " \n"],
)  # fmt: skip
def test_hostile_text_is_redacted_without_looking_twice(part: str) -> None:
    """An expression that ran away would not end: each text has 100,000 characters, and 300,000 in `make test-all`."""
    assert isinstance(redacted(part * (examples(300_000, few=100_000) // len(part))), str)


@pytest.mark.parametrize(
    ("uri", "is_told"),
    [
        ("s3a://AKIA:a/b@lake/raw", True),
        ("abfss://raw:secret@lake.dfs.core.windows.net/", True),
        ("abfss://raw@lake.dfs.core.windows.net/", False),
        ("hdfs://nn:8020/lake/a@b.csv", False),
        ("/lake/a:b@c", False),
    ],
)
def test_user_info_of_a_uri_is_known(uri: str, is_told: bool) -> None:
    assert has_user_info(uri) is is_told
