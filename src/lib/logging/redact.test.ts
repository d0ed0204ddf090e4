import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isSecretName, redactText } from './redact.ts';

const jwt = 'eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJzdWIiOiJzeXN0ZW06bm9kZSJ9.c2lnbmF0dXJl-_x';
const pem = '-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----';

test('distinguishes names that hold a secret from names that describe one', () => {
  const holding = [
    'Authorization',
    'token',
    'bearerToken',
    'access_token',
    'DB_PASSWORD',
    'secret',
    'auths',
    'auth',
  ];
  holding.push(
    '.dockerconfigjson',
    'client-key-data',
    'identityToken',
    'Set-Cookie',
    'aws_secret_access_key',
    'apiKey',
  );
  for (const name of holding) assert.equal(isSecretName(name), true, name);
  const describing = [
    'secretName',
    'tokenAudience',
    'imagePullSecrets',
    'author',
    'key',
    'passed',
    'podUID',
    'image',
  ];
  for (const name of describing) assert.equal(isSecretName(name), false, name);
});

test('removes secrets from text regardless of the surrounding text', () => {
  const cases = [
    [`token is ${jwt}, see`, 'token is [redacted], see'],
    [`prefix.${jwt}`, 'prefix.[redacted]'],
    [jwt.slice(0, 60), '[redacted]'],
    [`key:\n${pem}\nend`, 'key:\n[redacted]\nend'],
    [pem.slice(0, 45), '[redacted]'],
    [pem.replaceAll('\n', '\\n'), '[redacted]'],
    ['Authorization: Bearer abc.def', 'Authorization: Bearer [redacted]'],
    ['authorization=Basic dXNlcjpwYXNz', 'authorization=Basic [redacted]'],
    ['Authorization: s3cret', 'Authorization: [redacted]'],
    ['sent bearer s3cret to host', 'sent bearer [redacted] to host'],
    ['{"auths":{"r.io":{"auth":"dXNlcjpw"}}}', '{"auths":{"r.io":{"auth":"[redacted]"}}}'],
    ['{"password": "a\\"b", "user": "u"}', '{"password": "[redacted]", "user": "u"}'],
    ['{\\"password\\":\\"s3cret\\",\\"x\\":1}', '{\\"password\\":"[redacted]",\\"x\\":1}'],
    ['GET /x?access_token=s3cret&y=1', 'GET /x?access_token=[redacted]&y=1'],
    ['--registry-password=s3cret --v=4', '--registry-password=[redacted] --v=4'],
    ['{Username:u Password:s3cret Auth:s3cret}', '{Username:u Password:[redacted] Auth:[redacted]}'],
    ['password: s3cret', 'password: [redacted]'],
    ['https://user:s3cret@registry.example/v2/', 'https://[redacted]@registry.example/v2/'],
  ] as const;
  for (const [text, expected] of cases) assert.equal(redactText(text), expected);
});

test('does not change prose about secrets', () => {
  const texts = [
    'Cannot fetch token: serviceaccounts "x" not found',
    'Cannot mount secret "web/tls" as it must exist',
    'bearer token is not valid',
    'basic authentication is off',
    'ssh://git@example.com/x',
    'Pulling image "example.com/app@sha256:0123456789abcdef0123456789abcdef"',
    'pod web-6d4cf56db6-x7x2k.17a2b3c4d5e6f789',
    'failed to authenticate: certificate expired',
  ];
  for (const text of texts) assert.equal(redactText(text), text);
});

test('removes a secret from any surrounding text', () => {
  const secrets = fc.constantFrom(
    jwt,
    pem,
    'Bearer s3cretS3cret',
    '"password":"s3cretS3cret"',
    'token=s3cretS3cret',
  );
  fc.assert(
    fc.property(fc.string(), secrets, fc.string(), (before, secret, after) => {
      const text = redactText(`${before} ${secret} ${after}`);
      assert.doesNotMatch(text, /s3cretS3cret|MIIEow|c2lnbmF0dXJl/);
    }),
  );
});

/** The time of the fastest of several attempts, because other load only makes it slower. */
function leastCpu(attempts: number, work: () => void): number {
  const taken = Array.from({ length: attempts }, () => {
    const started = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(started);
    return user + system;
  });
  return Math.min(...taken);
}

test('redacting a text four times as long takes about four times as long', () => {
  const repeated = [
    'eyJ',
    '-----BEGIN ',
    'a.',
    'token',
    '"',
    '\\"',
    '\\',
    "\\'",
    ' ',
    '\t:',
    'bearer ',
    '://',
    ':/',
    'password:',
    "auth='",
    'cookie\\',
    '"token":\\',
    'secret"',
    'authorization"',
    '-----BEGIN PRIVATE KEY-----',
  ];
  const begins = [
    '',
    'token=',
    '"password":"',
    '"password": \\',
    'authorization',
    'bearer',
    'x://',
    'password:',
  ];
  const length = 8_192;
  for (const begin of begins)
    for (const part of repeated) {
      // Every text starts with a secret word: otherwise the quick check would skip the patterns
      // that are measured.
      const text = (size: number) => `token ${begin}${part.repeat(Math.ceil(size / part.length))}`;
      const [short, long] = [text(length), text(4 * length)];
      const growth =
        leastCpu(3, () => redactText(long)) /
        Math.max(
          1_000,
          leastCpu(3, () => redactText(short)),
        );
      assert.ok(growth < 10, `${JSON.stringify(begin + part)} grows ${growth} times`);
    }
});
