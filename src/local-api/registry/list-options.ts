import type { FieldCause } from '../api/api-types.ts';
import { badRequest, invalidFields } from '../api/status-errors.ts';

/** Options of a list or watch besides selectors. */
export interface ListOptions {
  readonly limit: number;
  readonly continue: string;
  /**
   * The requested resource version; empty for a read of the latest version, or for a watch from any
   * version.
   */
  readonly resourceVersion: string;
  readonly match: '' | 'Exact' | 'NotOlderThan';
  readonly timeoutSeconds: number;
  readonly bookmarks: 'enabled' | 'disabled';
  /** Whether a watch starts with the existing objects; by default this depends on the version. */
  readonly initialEvents: 'enabled' | 'disabled' | 'unset';
}

/** Parses the options of a list or watch. Throws a StatusError for invalid ones. */
export function listOptionsOf(query: URLSearchParams, verb: 'list' | 'watch'): ListOptions {
  const match = query.get('resourceVersionMatch') ?? '';
  const options = {
    limit: wholeNumber(query, 'limit'),
    continue: query.get('continue') ?? '',
    resourceVersion: query.get('resourceVersion') ?? '',
    match,
    timeoutSeconds: wholeNumber(query, 'timeoutSeconds'),
    bookmarks: isSet(query, 'allowWatchBookmarks') ? 'enabled' : 'disabled',
    initialEvents: initialEventsOf(query),
  } as const;
  const causes = verb === 'list' ? listCauses(options) : watchCauses(options);
  if (causes.length > 0) throw invalidFields({ kind: 'ListOptions', group: 'meta.k8s.io', name: '' }, causes);
  return options as ListOptions;
}

type Unchecked = Omit<ListOptions, 'match'> & { readonly match: string };

function forbidden(field: string, message: string): FieldCause {
  return { reason: 'FieldValueForbidden', field, message: `Forbidden: ${message}` };
}

function unsupported(match: string, supported: readonly string[]): FieldCause {
  const list = supported.map((value) => `"${value}"`).join(', ');
  return {
    reason: 'FieldValueNotSupported',
    field: 'resourceVersionMatch',
    message: `Unsupported value: "${match}": supported values: ${list}`,
  };
}

const matchField = 'resourceVersionMatch';

function listCauses({ match, resourceVersion, initialEvents, ...rest }: Unchecked): readonly FieldCause[] {
  const causes: FieldCause[] = [];
  if (match !== '' && resourceVersion === '')
    causes.push(forbidden(matchField, `${matchField} is forbidden unless resourceVersion is provided`));
  if (match !== '' && rest.continue !== '')
    causes.push(forbidden(matchField, `${matchField} is forbidden when continue is provided`));
  if (!['', 'Exact', 'NotOlderThan'].includes(match))
    causes.push(unsupported(match, ['Exact', 'NotOlderThan', '']));
  if (match === 'Exact' && resourceVersion === '0')
    causes.push(forbidden(matchField, `${matchField} "exact" is forbidden for resourceVersion "0"`));
  if (initialEvents !== 'unset')
    causes.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  return causes;
}

function watchCauses({ match, initialEvents, ...rest }: Unchecked): readonly FieldCause[] {
  const causes: FieldCause[] = [];
  if (initialEvents !== 'unset' && match !== 'NotOlderThan')
    causes.push(forbidden(matchField, `sendInitialEvents requires setting ${matchField} to NotOlderThan`));
  if (match === '') return causes;
  if (initialEvents === 'unset')
    causes.push(
      forbidden(matchField, `${matchField} is forbidden for watch unless sendInitialEvents is provided`),
    );
  if (match !== 'NotOlderThan') causes.push(unsupported(match, ['NotOlderThan']));
  if (rest.continue !== '')
    causes.push(forbidden(matchField, `${matchField} is forbidden when continue is provided`));
  return causes;
}

function initialEventsOf(query: URLSearchParams): ListOptions['initialEvents'] {
  if (!query.has('sendInitialEvents')) return 'unset';
  return isSet(query, 'sendInitialEvents') ? 'enabled' : 'disabled';
}

/** Parses a flag of the query: any value except '0' and 'false' counts as true. */
export function isSet(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

/** Parses a number of the query; zero if it is absent. */
export function wholeNumber(query: URLSearchParams, name: string): number {
  const text = query.get(name) ?? '';
  if (text === '') return 0;
  if (/^[+-]?\d{1,15}$/.test(text)) return Number(text);
  throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`);
}

/** Parses a resource version; undefined if empty. */
export function versionOf(text: string, prefix = ''): number | undefined {
  if (text === '') return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw badRequest(
    `${prefix}resourceVersion: Invalid value: "${text}": strconv.ParseUint: parsing "${text}": invalid syntax`,
  );
}
