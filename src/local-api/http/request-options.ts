import type { JsonObject } from '../../api/index.ts';
import { tryParseDurationMs } from '../../lib/index.ts';
import type { ResourceVerb } from '../api/index.ts';
import { badRequest } from '../api/status-errors.ts';
import { invalidOption } from './http-errors.ts';

/** Returns the kind of the options of a verb, such as DeleteOptions; error messages contain it. */
export function optionsKind(verb: ResourceVerb): string {
  const names: Readonly<Record<string, string>> = {
    create: 'CreateOptions',
    update: 'UpdateOptions',
    patch: 'PatchOptions',
    delete: 'DeleteOptions',
    deletecollection: 'DeleteOptions',
  };
  return names[verb] ?? 'ListOptions';
}

export function isWrite(verb: ResourceVerb): boolean {
  return verb !== 'get' && verb !== 'list' && verb !== 'watch';
}

/** Whether dryRun is requested in the query or in the body. */
export function isDryRun(verb: ResourceVerb, query: URLSearchParams, body: unknown): boolean {
  const values = query.getAll('dryRun');
  const inBody = (body as JsonObject | undefined)?.['dryRun'];
  const isDelete = verb === 'delete' || verb === 'deletecollection';
  const all = [...new Set<unknown>(isDelete && Array.isArray(inBody) ? [...values, ...inBody] : values)];
  const unknown = all.filter((value) => value !== 'All');
  if (isWrite(verb) && unknown.length > 0) {
    const message = `Unsupported value: ${JSON.stringify(unknown)}: supported values: "All"`;
    throw invalidOption(optionsKind(verb), 'dryRun', message);
  }
  return isWrite(verb) && all.length > 0;
}

const maxManagerLength = 128;
const applyType = 'application/apply-patch';

/** Checks the field manager and options that only apply supports; throws a StatusError. */
export function checkWriteOptions(verb: ResourceVerb, query: URLSearchParams, contentType = ''): void {
  const manager = query.get('fieldManager') ?? '';
  const field = 'fieldManager';
  if (Buffer.byteLength(manager) > maxManagerLength)
    throw invalidOption(optionsKind(verb), field, `Too long: may not be more than ${maxManagerLength} bytes`);
  const at = [...manager].findIndex((sign) => /\p{C}|[^\P{Z} ]/u.test(sign));
  if (at >= 0) {
    const sign = [...manager][at]?.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
    const why = `invalid character U+${sign} (at position ${at})`;
    throw invalidOption(optionsKind(verb), field, `Invalid value: ${JSON.stringify(manager)}: ${why}`);
  }
  if (verb === 'patch' && query.has('force') && !contentType.startsWith(applyType))
    throw invalidOption('PatchOptions', 'force', 'Forbidden: may not be specified for non-apply patch');
}

const readTimeoutMs = 60_000;
const writeTimeoutMs = 34_000;

/** The timeout of a request: the requested one, but at most that of the server. */
export function deadlineMs(verb: ResourceVerb, query: URLSearchParams): number {
  const most = isWrite(verb) ? writeTimeoutMs : readTimeoutMs;
  const requested = query.get('timeout') ?? '';
  if (requested === '') return most;
  const ms = tryParseDurationMs(requested);
  if (ms === undefined || ms < 0)
    throw badRequest(`invalid timeout specified in the request URL: ${JSON.stringify(requested)}`);
  return ms === 0 ? most : Math.min(ms, most);
}

/**
 * DeleteOptions from the query parameters, for requests without a body; undefined if the query has
 * none.
 */
export function deleteOptionsOf(query: URLSearchParams): JsonObject | undefined {
  const options = {
    ...given(query, 'gracePeriodSeconds', parseInteger),
    ...given(query, 'orphanDependents', parseBoolean),
    ...given(query, 'propagationPolicy', (text) => text),
  };
  const dryRun = query.getAll('dryRun').filter((value) => value !== '');
  if (Object.keys(options).length === 0 && dryRun.length === 0) return undefined;
  const headers = { kind: 'DeleteOptions', apiVersion: 'meta.k8s.io/v1' };
  return { ...headers, ...options, ...(dryRun.length === 0 ? {} : { dryRun }) };
}

function given(
  query: URLSearchParams,
  name: string,
  read: (text: string, name: string) => unknown,
): JsonObject {
  const text = query.get(name) ?? '';
  return text === '' ? {} : { [name]: read(text, name) };
}

function parseInteger(text: string, name: string): number {
  const value = Number(text);
  if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(value))
    throw badRequest(`${name} must be a whole number: current value is ${JSON.stringify(text.slice(0, 64))}`);
  return value;
}

function parseBoolean(text: string, name: string): boolean {
  if (/^(?:1|t|true)$/i.test(text)) return true;
  if (/^(?:0|f|false)$/i.test(text)) return false;
  throw badRequest(`${name} must be true or false: current value is ${JSON.stringify(text.slice(0, 64))}`);
}

const policies: readonly unknown[] = ['Foreground', 'Background', 'Orphan'];

/** Reads the delete options; throws a StatusError for invalid or conflicting ones. */
export function checkDeleteOptions(options: JsonObject): void {
  const { orphanDependents, propagationPolicy } = options;
  if (orphanDependents !== undefined && propagationPolicy !== undefined) {
    const message = `Invalid value: ${JSON.stringify(propagationPolicy)}: orphanDependents and deletionPropagation cannot be both set`;
    throw invalidOption('DeleteOptions', 'propagationPolicy', message);
  }
  if (propagationPolicy === undefined || policies.includes(propagationPolicy)) return;
  const supported = '"Foreground", "Background", "Orphan", "nil"';
  const message = `Unsupported value: ${JSON.stringify(propagationPolicy)}: supported values: ${supported}`;
  throw invalidOption('DeleteOptions', 'propagationPolicy', message);
}
