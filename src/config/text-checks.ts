import { isIP } from 'node:net';
import { posix } from 'node:path';
import type { TextCheck } from './fields.ts';

/** Checks of single texts. Each answers with what the text must be, or undefined when it is. */

export const ipAddress: TextCheck = (value) => (isIP(value) === 0 ? 'an IP address' : undefined);

/** One or more networks, separated by commas; empty is none. */
export const networks: TextCheck = (value) =>
  value === '' || value.split(',').every(isNetwork) ? undefined : 'networks such as 10.244.0.0/24';

function isNetwork(value: string): boolean {
  const [address = '', bits = '', ...rest] = value.trim().split('/');
  const family = isIP(address);
  return (
    family !== 0 && rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
  );
}

export const webUrl: TextCheck = (value) => {
  if (value === '') return undefined;
  const url = URL.parse(value);
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:')
    ? undefined
    : 'an http or https URL';
};

/** A socket of the runtime; a bare path is taken for one. Empty is none. */
export const unixEndpoint: TextCheck = (value) =>
  value === '' || /^(unix:\/\/)?\/[^/]/.test(value)
    ? undefined
    : 'a socket such as unix:///run/containerd/containerd.sock';

/** Absolute, without `.`, `..` or doubled slashes, in ASCII as it becomes a metric's label. */
export const cleanPath: TextCheck = (value) => {
  if (!posix.isAbsolute(value)) return 'an absolute path';
  if (posix.normalize(value) !== value || (value !== '/' && value.endsWith('/'))) return 'a normalized path';
  return /^[\x20-\x7e]*$/.test(value) ? undefined : 'a path of ASCII characters only';
};

/** Only the version before this one can still show the metrics it had hidden. */
export const previousVersion: TextCheck = (value) =>
  value === '' || value === '1.35' ? undefined : '1.35 or empty';

const cpuRange = /^(\d{1,6})(?:-(\d{1,6}))?$/;

/** As `0-3,7`; empty is none. */
export const cpuList: TextCheck = (value) =>
  value === '' || value.split(',').every(isCpuRange) ? undefined : 'a list of CPUs such as 0-3,7';

function isCpuRange(value: string): boolean {
  const range = cpuRange.exec(value);
  return range !== null && Number(range[1]) <= Number(range[2] ?? range[1]);
}

/** Where traces go: a name and port, or a gRPC address of one of three schemes. */
export const traceEndpoint: TextCheck = (value) => {
  const scheme = /^([^/]*)\/\//.exec(value)?.[1];
  const known = scheme === undefined || ['dns:', 'unix:', 'unix-abstract:'].includes(scheme);
  return known && !/\s/.test(value)
    ? undefined
    : 'host:port or an address with the scheme dns, unix or unix-abstract';
};
