import { posix } from 'node:path';
import { type Clock, describeError, isKind, KubelingError, LinkedController } from '../../lib/index.ts';
import { disabledRoute, type Request, type Response, type Route, text } from '../router.ts';
import type { Journal } from './journal.ts';
import type { LogNode, LogTree } from './log-tree.ts';
import { hasOptions, type NodeLogQuery, readNodeLogQuery } from './node-log-query.ts';

export interface SystemLogs {
  readonly clock: Clock;
  readonly tree: LogTree;
  /** The journal of the host; undefined unless `enableSystemLogQuery` is set. */
  readonly journal: Journal | undefined;
}

const prefix = '/logs/';
const queryWithinMs = 30_000;
const notFound = text(404, '404 page not found\n');

/** The /logs/ route: log files of the host and the journal of its services. */
export function systemLogsRoute(logs: SystemLogs | 'disabled'): Route {
  if (logs === 'disabled') return disabledRoute(prefix, 'logs endpoint is disabled.\n');
  return { path: prefix, methods: ['GET'], answer: (request, signal) => respond(logs, request, signal) };
}

async function respond(logs: SystemLogs, request: Request, signal: AbortSignal): Promise<Response> {
  const path = pathOf(request.path);
  if (path === undefined) return notFound;
  const { journal, tree } = logs;
  if (journal === undefined) return await show(tree, path, request.path);
  const read = readNodeLogQuery(request.query);
  if (read.kind === 'none') return await show(tree, path, request.path);
  if (read.kind === 'refused') return text(read.status, read.message);
  if (path !== '') return text(406, 'a query must be sent to /logs/ itself\n');
  const [file] = read.query.files;
  if (file !== undefined) return await showQueried(tree, file.replaceAll('\\', '/'));
  const body = queried(logs, journal, read.query, signal);
  return { status: 200, contentType: 'text/plain;charset=UTF-8', body };
}

/** The path below the log directory; undefined for an invalid path. */
function pathOf(requested: string): string | undefined {
  try {
    return decodeURIComponent(requested.slice(prefix.length));
  } catch {
    return undefined;
  }
}

async function show(tree: LogTree, path: string, requested: string): Promise<Response> {
  try {
    const node = await tree.inspect(path);
    if (node.kind === 'directory') return listing(node, requested);
    return fileResponse(node, path);
  } catch (error) {
    if (isKind(error, 'Denied')) return text(403, `${describeError(error)}\n`);
    throw error;
  }
}

/** Responds with a file named in a query, which must exist. */
async function showQueried(tree: LogTree, file: string): Promise<Response> {
  const shown = await show(tree, file, `${prefix}${file}`);
  return shown.status === 200 ? shown : text(406, `query must name an existing file: ${file}\n`);
}

function fileResponse(node: Exclude<LogNode, { kind: 'directory' }>, path: string): Response {
  if (node.kind === 'absent') return notFound;
  const isPacked = /\.(?:gz|xz|zst|bz2)$/.test(path);
  const contentType = isPacked ? 'application/octet-stream' : 'text/plain; charset=utf-8';
  return { status: 200, contentType, body: node.chunks };
}

/**
 * HTML list of a directory. Links are relative, because clients may use a proxy; without a trailing
 * slash in the request path they start with its last component.
 */
function listing({ names }: Extract<LogNode, { kind: 'directory' }>, requested: string): Response {
  const base = requested.endsWith('/') ? './' : `./${posix.basename(requested)}/`;
  const links = names.map((name) => {
    const target = name.split('/').map(encodeURIComponent).join('/');
    return `<a href="${base}${target}">${escapeHtml(name)}</a>\n`;
  });
  const body = `<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n${links.join('')}</pre>\n`;
  return { status: 200, contentType: 'text/html; charset=utf-8', body };
}

function escapeHtml(value: string): string {
  return value.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);
}

/**
 * Streams the result of a query. Later errors are reported in the text, because the client may have
 * read its beginning.
 */
async function* queried(
  { clock, tree }: SystemLogs,
  journal: Journal,
  { services, options }: NodeLogQuery,
  parent: AbortSignal,
): AsyncGenerator<Uint8Array> {
  using work = new LinkedController(parent);
  using _timer = clock.timer(queryWithinMs, () =>
    work.abort(new KubelingError('DEADLINE_EXCEEDED', `Cannot read logs within ${queryWithinMs} ms`)),
  );
  const known = await journal.units(work.signal);
  const unitOf = (service: string) => [`${service}.service`, service].find((unit) => known.has(unit));
  const units = services.flatMap((service) => unitOf(service) ?? []);
  const others = services.filter((service) => unitOf(service) === undefined);
  if (units.length > 0) {
    try {
      yield* journal.read(units, options, work.signal);
    } catch {
      yield Buffer.from('\nerror: the journal cannot be read\n');
    }
    if (work.signal.aborted && !parent.aborted)
      yield Buffer.from('\nerror: reading the journal took too long\n');
  }
  if (others.length > 0 && hasOptions(options)) {
    const names = others.join(', ');
    yield Buffer.from(`\nerror: options need a journal, but these services write to files: ${names}\n`);
    return;
  }
  for (const service of others) yield* serviceFile(tree, service);
}

/**
 * Streams the log file of a service without a journal; it has the service's name in one of three
 * locations.
 */
async function* serviceFile(tree: LogTree, service: string): AsyncGenerator<Uint8Array> {
  for (const path of [service, `${service}.log`, `${service}/${service}.log`]) {
    try {
      const node = await tree.inspect(path);
      if (node.kind === 'file') return yield* node.chunks;
    } catch (error) {
      return yield Buffer.from(`\nerror: the log of ${service} cannot be read: ${describeError(error)}\n`);
    }
  }
  yield Buffer.from(`\nerror: there is no log of ${service}\n`);
}
