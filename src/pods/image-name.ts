/** The grammar of image names: `[host[:port]/]path[:tag][@digest]`. */

const pathPart = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const hostPart = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const host = `(?:${hostPart}(?:\\.${hostPart})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const name = `(?:${host}/)?${pathPart}(?:/${pathPart})*`;
const tag = '\\w[\\w.-]{0,127}';
const digest = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}';
const whole = new RegExp(`^(${name})(?::(${tag}))?(?:@(${digest}))?$`);
const longestName = 255;

export type ImageName =
  | { readonly ok: true; readonly reference: string; readonly tag: string; readonly digest: string }
  | { readonly ok: false; readonly why: string };

/**
 * The image name as it is sent to the runtime: with the tag latest when it has neither tag nor
 * digest.
 */
export function readImageName(text: string): ImageName {
  const [, path, tagText = '', digestText = ''] = whole.exec(text) ?? [];
  const wrong = path === undefined ? whyNot(text) : invalidReason(text, path);
  if (wrong !== undefined) return { ok: false, why: `couldn't parse image name "${text}": ${wrong}` };
  const bare = tagText === '' && digestText === '';
  return {
    ok: true,
    reference: bare ? `${text}:latest` : text,
    tag: bare ? 'latest' : tagText,
    digest: digestText,
  };
}

function whyNot(text: string): string {
  const lower = text.toLowerCase();
  const isUpper = lower !== text && whole.test(lower);
  return `invalid reference format${isUpper ? ': repository name must be lowercase' : ''}`;
}

/** 64 hexadecimal digits are not a valid image name, because runtimes treat them as an image ID. */
function invalidReason(text: string, path: string): string | undefined {
  if (/^[a-f0-9]{64}$/.test(text))
    return `invalid repository name (${text}), cannot specify 64-byte hexadecimal strings`;
  if (path.length <= longestName) return undefined;
  return `repository name must not be more than ${longestName} characters`;
}

/** The image name without tag and digest, otherwise as written. */
export function bareImageName(text: string): string {
  return whole.exec(text)?.[1] ?? text;
}

export type PullPolicy = 'Always' | 'IfNotPresent' | 'Never';

/** The default pull policy of an image: Always for the tag latest, else IfNotPresent. */
export function pullPolicyOf(policy: string | undefined, image: string): PullPolicy {
  if (policy === 'Always' || policy === 'IfNotPresent' || policy === 'Never') return policy;
  const parsed = readImageName(image);
  return parsed.ok && parsed.tag === 'latest' ? 'Always' : 'IfNotPresent';
}
