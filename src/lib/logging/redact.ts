/**
 * Recognises secrets by key name and by pattern. Every pattern takes time linear in the length of
 * the text, because log lines contain external input.
 */

export const redacted = '[redacted]';

const secretNames = new Set(['auth', 'auths', 'bearer', 'cookie', 'jwt', 'pass', 'pwd', 'setcookie']);
const secretEndings =
  /(?:token|tokens|password|passwords|passwd|passphrase|secret|authorization|credential|credentials|apikey|accesskey|privatekey|secretkey|secretdata|keydata|dockercfg|dockerconfig|dockerconfigjson)$/;

/**
 * Whether a value with this name is a secret. A name that ends in a secret word holds a secret
 * (`bearerToken`, `DB_PASSWORD`, `secret`); a name that begins with it describes one (`secretName`,
 * `tokenAudience`).
 */
export function isSecretName(name: string): boolean {
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '');
  return secretNames.has(plain) || secretEndings.test(plain);
}

/** A quick check: text without a match skips the other patterns. */
const suspicious =
  /PRIVATE KEY|eyJ|bearer|basic|passw|passphrase|token|secret|auth|api_?key|access_?key|cookie|credential|:\/\/[^\s/@]*@/i;

const secretWord =
  'password|passwd|passphrase|token|secret|apikey|api_key|accesskey|access_key|authorization|auth|credentials?';
const privateKey =
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g;
const tokenLike = /[\w.-]{20,}/g;
const scheme = /\b(bearer|basic)(\s+)([\w.~+/=-]+)/gi;
const header =
  /\b(authorization|cookie)(["'\\]*\s*[:=]\s*["'\\]*)(?:(bearer|basic|digest|negotiate)\s+)?[^\s"'\\,;]+/gi;
/**
 * `"password": "x"` as in JSON, also when its quotes are escaped up to three times. Without that
 * limit every backslash in a long sequence would start a match over the rest of it.
 */
const quotedPair = new RegExp(
  String.raw`(\\{0,7}["'])([\w.-]{0,40}(?:${secretWord}))\1(\s*:\s*)(?:\\+"[^"\\]*(?:\\+")?|"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s,}\]]+)`,
  'gi',
);
/** `password=x` and `Token:x` without a space, as in queries, flags and dumps of structures. */
const plainPair = new RegExp(
  String.raw`\b([\w.-]{0,40}(?:${secretWord}))([:=])(?!\s)["']?[^\s,;&"'})\]]+["']?`,
  'gi',
);
const passwordLine = /\b(password|passwd|passphrase)(:\s+)\S+/gi;
const userInfo = /(:\/\/)[^\s/@:]*:[^\s/@]*@/g;

/** Returns the text with everything replaced that looks like a secret. */
export function redactText(text: string): string {
  if (!suspicious.test(text)) return text;
  return text
    .replace(privateKey, redacted)
    .replace(tokenLike, withoutJwt)
    .replace(
      header,
      (_all, name, separator, kind) => `${name}${separator}${kind ? `${kind} ` : ''}${redacted}`,
    )
    .replace(scheme, (all, name, blank, value) => (isProse(value) ? all : `${name}${blank}${redacted}`))
    .replace(quotedPair, `$1$2$1$3"${redacted}"`)
    .replace(plainPair, (all, name, separator) => (isHarmless(name) ? all : `${name}${separator}${redacted}`))
    .replace(passwordLine, `$1$2${redacted}`)
    .replace(userInfo, `$1${redacted}@`);
}

/**
 * A JWT starts with an encoded brace and quote; one dot after that is enough, because it may be
 * truncated.
 */
function withoutJwt(run: string): string {
  const start = run.indexOf('eyJ');
  return start >= 0 && run.indexOf('.', start) > start ? run.slice(0, start) + redacted : run;
}

const proseAfterScheme = new Set([
  'auth',
  'authentication',
  'authorization',
  'credentials',
  'token',
  'tokens',
]);

/** The words "basic authentication" and "bearer token" are prose, not credentials. */
function isProse(value: string): boolean {
  return proseAfterScheme.has(value.toLowerCase());
}

/**
 * The value of an Authorization header needs no redaction here: its credentials were redacted
 * before, so only its scheme is left.
 */
function isHarmless(name: string): boolean {
  return name.toLowerCase() === 'authorization';
}
