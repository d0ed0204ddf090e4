/** A query of the logs of the host's services, or of one file. */
export interface NodeLogQuery {
  readonly services: readonly string[];
  readonly files: readonly string[];
  readonly options: JournalOptions;
}

export interface JournalOptions {
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
  readonly tailLines?: number | undefined;
  readonly boot?: number | undefined;
  readonly pattern?: string | undefined;
}

export type ReadNodeLogQuery =
  /** The request has no query options; its path selects the log. */
  | { readonly kind: 'none' }
  | { readonly kind: 'query'; readonly query: NodeLogQuery }
  | { readonly kind: 'refused'; readonly status: 400 | 406; readonly message: string };

const maxTailLines = 100_000;
const maxServices = 4;
const maxServiceChars = 256;
const maxPatternChars = 4_096;

/**
 * Parses the options of a log query. Unparsable options are reported together; if there are none,
 * disallowed ones are reported together.
 */
export function readNodeLogQuery(params: URLSearchParams): ReadNodeLogQuery {
  const unreadable: string[] = [];
  const queries = params.getAll('query');
  const files = queries.filter((each) => /[/\\]/.test(each));
  const services = queries.filter((each) => !/[/\\]/.test(each) && each.trim() !== '');
  if (queries.length > 0 && files.length + services.length === 0) unreadable.push('query may not be empty');
  const options: JournalOptions = {
    sinceMs: readTime(params, 'sinceTime', unreadable),
    untilMs: readTime(params, 'untilTime', unreadable),
    tailLines: readInteger(params, 'tailLines', unreadable),
    boot: readInteger(params, 'boot', unreadable),
    pattern: params.get('pattern') || undefined,
  };
  if (unreadable.length > 0) return refused(400, unreadable);
  if (queries.length === 0 && !hasOptions(options)) return { kind: 'none' };
  const query = { services, files, options };
  const invalid = [...problemsOfNames(query), ...problemsOfOptions(options)];
  return invalid.length > 0 ? refused(406, invalid) : { kind: 'query', query };
}

export function hasOptions(options: JournalOptions): boolean {
  return Object.values(options).some((value) => value !== undefined);
}

function problemsOfNames({ services, files, options }: NodeLogQuery): readonly string[] {
  const problems = services.flatMap(problemsOfService);
  if (services.length > maxServices) problems.push(`query must name at most ${maxServices} services`);
  if (files.length + services.length === 0) problems.push('query must be given with options');
  if (files.length > 0 && services.length > 0) problems.push('query must not name a file and a service');
  if (files.length > 1) problems.push('query must not name more than one file');
  if (files.length === 1 && hasOptions(options))
    problems.push('query must not name a file together with options');
  return problems;
}

/**
 * Returns problems of a service name. Names become arguments of journalctl, so only safe characters
 * are allowed.
 */
function problemsOfService(service: string): string[] {
  if (service.length > maxServiceChars) return [`query must be at most ${maxServiceChars} characters long`];
  return /^[a-zA-Z\-_.:0-9@]+$/.test(service)
    ? []
    : [`query has characters that service names cannot have: ${service}`];
}

function problemsOfOptions({
  sinceMs,
  untilMs,
  tailLines,
  boot,
  pattern,
}: JournalOptions): readonly string[] {
  const problems: string[] = [];
  if (sinceMs !== undefined && untilMs !== undefined && sinceMs > untilMs) {
    problems.push('untilTime must not be before sinceTime');
  }
  if (boot !== undefined && boot > 0) problems.push(`boot must be 0 or less: current value is ${boot}`);
  if (tailLines !== undefined && (tailLines < 0 || tailLines > maxTailLines)) {
    problems.push(`tailLines must be from 0 to ${maxTailLines}: current value is ${tailLines}`);
  }
  if (pattern !== undefined && !isPattern(pattern)) problems.push('pattern must be a regular expression');
  return problems;
}

function isPattern(text: string): boolean {
  if (text.length > maxPatternChars || text.includes('\0')) return false;
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}

const timeText = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

function readTime(params: URLSearchParams, name: string, problems: string[]): number | undefined {
  const text = params.get(name) ?? '';
  if (text === '') return undefined;
  const ms = timeText.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  problems.push(`${name} must be a time as 2006-01-02T15:04:05Z: current value is ${JSON.stringify(text)}`);
  return undefined;
}

function readInteger(params: URLSearchParams, name: string, problems: string[]): number | undefined {
  const text = params.get(name) ?? '';
  if (text === '') return undefined;
  if (/^[-+]?\d{1,9}$/.test(text)) return Number(text);
  problems.push(`${name} must be a whole number: current value is ${JSON.stringify(text)}`);
  return undefined;
}

function refused(status: 400 | 406, problems: readonly string[]): ReadNodeLogQuery {
  return { kind: 'refused', status, message: `${problems.join('; ')}\n` };
}
