import { isIP } from 'node:net';
import type { TextRule } from './report.ts';

/** Formats of texts, with the messages of the API server, which users recognize. */

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const subdomain = `${label}(\\.${label})*`;
const looseLabel = '[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const looseSubdomainForm = `_?${looseLabel}(\\._?${looseLabel})*`;
const qualified = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const sysctl = '^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$';

const longestLabel = 63;
const longestSubdomain = 253;

const lowerCase = 'lower case alphanumeric characters';
const bothEnds = 'must start and end with an alphanumeric character';

interface Form {
  readonly shape: string;
  readonly must: string;
  readonly such: readonly string[];
}

function described({ shape, must, such }: Form): string {
  return `${must} (e.g. ${such.map((example) => `'${example}', `).join(' or ')}regex used for validation is '${shape}')`;
}

function matches(shape: string): RegExp {
  return new RegExp(`^(?:${shape})$`);
}

function shaped(form: Form, longest: number): TextRule {
  const pattern = matches(form.shape);
  return (text) => [...atMost(longest)(text), ...(pattern.test(text) ? [] : [described(form)])];
}

function atMost(longest: number): TextRule {
  return (text) => (text.length > longest ? [`must be no more than ${longest} characters`] : []);
}

const labelForm: Form = {
  shape: label,
  must: `a lowercase RFC 1123 label must consist of ${lowerCase} or '-', and ${bothEnds}`,
  such: ['my-name', '123-abc'],
};

const dnsLabelPattern = matches(label);
const subdomainPattern = matches(subdomain);

export const dnsLabel: TextRule = (text) => {
  const long = atMost(longestLabel)(text);
  if (dnsLabelPattern.test(text)) return long;
  return [...long, subdomainPattern.test(text) ? 'must not contain dots' : described(labelForm)];
};

export const dnsSubdomain: TextRule = shaped(
  {
    shape: subdomain,
    must: `a lowercase RFC 1123 subdomain must consist of ${lowerCase}, '-' or '.', and ${bothEnds}`,
    such: ['example.com'],
  },
  longestSubdomain,
);

/** DNS search domains may contain underscores, too. */
export const looseSubdomain: TextRule = shaped(
  {
    shape: looseSubdomainForm,
    must: `a lowercase RFC 1123 subdomain must consist of ${lowerCase}, '_', '-' or '.', and ${bothEnds}`,
    such: ['example.com'],
  },
  longestSubdomain,
);

const configKeyForm = shaped(
  {
    shape: '[-._a-zA-Z0-9]+',
    must: "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    such: ['key.name', 'KEY_NAME', 'key-name'],
  },
  longestSubdomain,
);

export const configKey: TextRule = (text) => [...configKeyForm(text), ...climbing(text)];

function climbing(text: string): readonly string[] {
  if (text === '.' || text === '..') return [`must not be '${text}'`];
  return text.startsWith('..') ? ["must not start with '..'"] : [];
}

const sysctlPattern = new RegExp(sysctl);

export const sysctlName: TextRule = (text) =>
  text.length <= longestSubdomain && sysctlPattern.test(text)
    ? []
    : [`must have at most ${longestSubdomain} characters and match regex ${sysctl}`];

const anyCase = `alphanumeric characters, '-', '_' or '.', and ${bothEnds}`;

const labelValueForm: Form = {
  shape: `(${qualified})?`,
  must: `a valid label must be an empty string or consist of ${anyCase}`,
  such: ['MyValue', 'my_value', '12345'],
};
const labelValuePattern = matches(labelValueForm.shape);

export const labelValue: TextRule = (text) => [
  ...atMostBytes(text),
  ...(labelValuePattern.test(text) ? [] : [described(labelValueForm)]),
];

function atMostBytes(text: string): readonly string[] {
  return Buffer.byteLength(text) > longestLabel ? [`must be no more than ${longestLabel} bytes`] : [];
}

const keyForm: Form = {
  shape: qualified,
  must: `must consist of ${anyCase}`,
  such: ['MyName', 'my.name', '123-abc'],
};
const keyPattern = matches(qualified);
const tooManySlashes = `a valid label key ${described(keyForm)} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`;

/** A qualified name: `name` or `example.com/name`. */
export const qualifiedName: TextRule = (text) => {
  const parts = text.split('/');
  if (parts.length > 2) return [tooManySlashes];
  const name = parts.at(-1) ?? '';
  return [
    ...(parts.length > 1 ? ofPart('prefix', parts[0] ?? '', dnsSubdomain) : []),
    ...(name === '' ? ['name part must be non-empty'] : atMostBytes(name).map((why) => `name part ${why}`)),
    ...(keyPattern.test(name) ? [] : [`name part ${described(keyForm)}`]),
  ];
};

function ofPart(part: string, text: string, rule: TextRule): readonly string[] {
  const told = text === '' ? ['must be non-empty'] : rule(text);
  return told.map((why) => `${part} part ${why}`);
}

/** The keys of annotations are case-insensitive. */
export const annotationKey: TextRule = (text) => qualifiedName(text.toLowerCase());

const longestPortName = 15;

export const portName: TextRule = (text) => [
  ...atMost(longestPortName)(text),
  ...(/^[-a-z0-9]+$/.test(text)
    ? []
    : ['must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)']),
  ...(/[a-z]/.test(text) ? [] : ['must contain at least one letter (a-z)']),
  ...(text.includes('--') ? ['must not contain consecutive hyphens'] : []),
  ...(/^-|-$/.test(text) ? ['must not begin or end with a hyphen'] : []),
];

/** The name of an environment variable: any printable characters except the equals sign. */
export const envName: TextRule = (text) =>
  /^[\x20-\x3c\x3e-\x7e]+$/.test(text)
    ? []
    : ["a valid environment variable name must consist only of printable ASCII characters other than '='"];

export const httpHeaderName: TextRule = (text) =>
  /^[-A-Za-z0-9]+$/.test(text)
    ? []
    : [
        described({
          shape: '[-A-Za-z0-9]+',
          must: "a valid HTTP header must consist of alphanumeric characters or '-'",
          such: ['X-Header-Name'],
        }),
      ];

export const ipAddress: TextRule = (text) =>
  isIP(text) !== 0 && !text.includes('%')
    ? []
    : ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'];

/** Rejects a path with `..` as an element. */
export const pathWithoutBacksteps: TextRule = (text) =>
  text.split('/').includes('..') ? ["must not contain '..'"] : [];

/** Requires a relative path without `..` as an element. */
export const descendingPath: TextRule = (text) => [
  ...(text.startsWith('/') ? ['must be a relative path'] : []),
  ...pathWithoutBacksteps(text),
];

/** File names that start with two dots are reserved for the kubelet. */
export const localPath: TextRule = (text) => {
  const told = descendingPath(text);
  const first = text.startsWith('..') && !text.startsWith('../') ? ["must not start with '..'"] : [];
  return [...told, ...first];
};

/** A port number of a container or probe. */
export const portRange = [1, 65_535] as const;
/** The user IDs that are valid on both Linux and Windows. */
export const userIdRange = [0, 2 ** 31 - 1] as const;
export const fileModeRange = [0, 0o777] as const;
