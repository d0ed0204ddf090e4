import { isIP } from 'node:net';
import type { TextRule } from './report.ts';

/** The forms texts must have. Each rule answers what a text must be, or nothing when it is that. */

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const labelWithUnderscore = '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const dnsLabelShape = new RegExp(`^${label}$`);
const subdomainShape = new RegExp(`^${label}(\\.${label})*$`);
const looseSubdomainShape = new RegExp(`^${labelWithUnderscore}(\\.${labelWithUnderscore})*$`);
const qualifiedNameShape = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const sysctlShape = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/;

const longestLabel = 63;
const longestSubdomain = 253;

function shaped(shape: RegExp, longest: number, must: string): TextRule {
  return (text) =>
    text.length <= longest && shape.test(text) ? undefined : `${must}, at most ${longest} characters long`;
}

export const dnsLabel: TextRule = shaped(
  dnsLabelShape,
  longestLabel,
  'consist of lower-case letters, digits and -, with a letter or digit at both ends',
);

export const dnsSubdomain: TextRule = shaped(
  subdomainShape,
  longestSubdomain,
  'consist of lower-case letters, digits, - and ., with a letter or digit at both ends of each part',
);

/** Search domains may have underscores too. */
export const looseSubdomain: TextRule = shaped(
  looseSubdomainShape,
  longestSubdomain,
  'consist of lower-case letters, digits, _, - and ., with a letter or digit at the end of each part',
);

export const configKey: TextRule = shaped(
  /^[-._a-zA-Z0-9]+$/,
  longestSubdomain,
  'consist of letters, digits, -, _ and .',
);

export const sysctlName: TextRule = shaped(
  sysctlShape,
  longestSubdomain,
  'be the name of a kernel parameter such as net.ipv4.ip_forward',
);

export const labelValue: TextRule = (text) =>
  text === '' || (text.length <= longestLabel && qualifiedNameShape.test(text))
    ? undefined
    : `consist of letters, digits, -, _ and ., with a letter or digit at both ends, at most ${longestLabel} characters long`;

/** `name` or `example.com/name`. */
export const qualifiedName: TextRule = (text) => {
  const parts = text.split('/');
  const name = parts.at(-1) ?? '';
  const domain = parts.length > 1 ? parts[0] : undefined;
  const sound =
    parts.length <= 2 &&
    name.length <= longestLabel &&
    qualifiedNameShape.test(name) &&
    (domain === undefined || dnsSubdomain(domain) === undefined);
  return sound ? undefined : 'be a name of at most 63 characters, with an optional domain and / before it';
};

/** The keys of annotations are names whose case does not matter. */
export const annotationKey: TextRule = (text) => qualifiedName(text.toLowerCase());

export const portName: TextRule = (text) =>
  /^[-a-z0-9]{1,15}$/.test(text) && /[a-z]/.test(text) && !/^-|-$|--/.test(text)
    ? undefined
    : 'be at most 15 lower-case letters, digits and single - inside, with at least one letter';

/** Anything printable but the equals sign. */
export const envName: TextRule = (text) =>
  /^[\x20-\x3c\x3e-\x7e]+$/.test(text) ? undefined : 'consist of printable ASCII characters other than =';

export const httpHeaderName: TextRule = (text) =>
  /^[-A-Za-z0-9]+$/.test(text) ? undefined : 'consist of letters, digits and -';

export const ipAddress: TextRule = (text) =>
  isIP(text) !== 0 && !text.includes('%') ? undefined : 'be an IP address such as 10.9.8.7 or 2001:db8::ffff';

/** Driver names are subdomains in any case. */
export const csiDriverName: TextRule = (text) =>
  text.length <= longestLabel && dnsSubdomain(text.toLowerCase()) === undefined
    ? undefined
    : 'consist of letters, digits, - and ., at most 63 characters long';

/** No step back anywhere. */
export const pathWithoutBacksteps: TextRule = (text) =>
  text.split('/').includes('..') ? 'not contain ..' : undefined;

/** A path that stays below where it is taken from. */
export const descendingPath: TextRule = (text) =>
  text.startsWith('/') ? 'be a relative path' : pathWithoutBacksteps(text);

/** Names with two dots in front are kept for the kubelet's own bookkeeping. */
export const localPath: TextRule = (text) =>
  descendingPath(text) ?? (text.startsWith('..') ? 'not start with ..' : undefined);

/** What a port of a container or probe may be. */
export const portRange = [1, 65_535] as const;
/** What the kernel and Windows agree on. */
export const userIdRange = [0, 2 ** 31 - 1] as const;
export const fileModeRange = [0, 0o777] as const;
