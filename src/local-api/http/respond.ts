import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { nextTurn, nodeHttp, randomHex } from '../../lib/index.ts';
import type { ServedWatchEvent } from '../api/responses.ts';
import {
  bodyBytes,
  errorReply,
  isExpectedError,
  type Reply,
  sendChunks,
  sendReply,
  setCommonHeaders,
  warningHeaders,
} from './reply.ts';
import type { HandlerResult, RequestHandler } from './request-handler.ts';
import type { ApiServerDeps, ClientInfo } from './server-deps.ts';
import { sendWatch } from './watch-response.ts';

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly facts: ClientInfo;
  /** Whether no user has been authenticated on the connection. */
  readonly isAnonymous: () => boolean;
}

/** Responds to one request. Rejects only if the client is disconnected. */
export async function respondToRequest(
  { incoming, outgoing, facts, isAnonymous }: Exchange,
  handler: RequestHandler,
  deps: ApiServerDeps,
  signal: AbortSignal,
): Promise<void> {
  const context = contextOf(incoming, deps);
  try {
    const request = { incoming, client: facts, auditId: context.auditId, warn: context.warn };
    const handled = await handler.handle(request, signal);
    // Discards a body that was not read: otherwise Node.js would not report that the client
    // disconnects.
    if (handled.kind !== 'stream') incoming.resume();
    await send(handled, outgoing, context, deps, signal);
  } catch (error) {
    context.logUnexpected(error, signal);
    // After the headers are sent, the only way to signal an error is to close the connection.
    if (outgoing.headersSent) outgoing.destroy();
    else sendReply(outgoing, rejection(error, isAnonymous()), context);
  } finally {
    if (!incoming.readableFlowing) incoming.resume();
  }
}

/**
 * Closes the connection after a rejected request without credentials, so that each of these
 * requests needs a new connection.
 */
function rejection(error: unknown, isAnonymous: boolean): Reply {
  const reply = errorReply(error);
  const isRejected = [401, 403, 414].includes(reply.status);
  return isRejected && isAnonymous ? { ...reply, headers: { ...reply.headers, Connection: 'close' } } : reply;
}

async function send(
  handled: HandlerResult,
  outgoing: ServerResponse,
  context: ResponseContext,
  deps: ApiServerDeps,
  signal: AbortSignal,
): Promise<void> {
  if (handled.kind === 'reply') {
    const { status, headers, body } = handled.reply;
    if (typeof body === 'string' || body instanceof Uint8Array) sendReply(outgoing, handled.reply, context);
    else {
      setCommonHeaders(outgoing, context);
      outgoing.writeHead(status, headers);
      await sendChunks(outgoing, body, deps.clock, signal);
    }
    destroyIfUnread(outgoing, deps);
  } else if (handled.kind === 'watch') await startWatch(handled, outgoing, context, deps, signal);
  else {
    setCommonHeaders(outgoing, context);
    await deps.streams?.respond(handled.call, outgoing, signal);
  }
}

const unreadTimeoutMs = 60_000;

/**
 * A response stays in memory until the client has read it, so a client that does not read is
 * disconnected.
 */
function destroyIfUnread(outgoing: ServerResponse, { clock }: ApiServerDeps): void {
  if (outgoing.writableFinished || outgoing.destroyed) return;
  const timer = clock.timer(unreadTimeoutMs, () => void outgoing.destroy());
  outgoing.once('close', () => timer.cancel());
}

async function startWatch(
  { lines, text }: Extract<HandlerResult, { kind: 'watch' }>,
  outgoing: ServerResponse,
  context: ResponseContext,
  { clock }: ApiServerDeps,
  signal: AbortSignal,
): Promise<void> {
  const first = lines.next();
  await waitForImmediateFailure(first);
  setCommonHeaders(outgoing, context);
  outgoing.writeHead(200, { 'Content-Type': 'application/json' });
  outgoing.flushHeaders();
  const failed = (error: unknown) => context.logUnexpected(error, signal);
  await sendWatch(outgoing, { events: lines, first, encode: text, onFailure: failed }, clock, signal);
}

/**
 * Waits for the first event only until the watch has started: a watch that cannot start is rejected
 * with a Status, but a started one may have no event for a long time.
 */
async function waitForImmediateFailure(first: Promise<IteratorResult<ServedWatchEvent>>): Promise<void> {
  const turn = nextTurn();
  first.catch(() => {});
  await Promise.race([first, turn]);
}

interface Upgrade {
  readonly incoming: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Uint8Array;
  readonly facts: ClientInfo;
}

/** Responds to an upgrade request, such as that of exec. */
export async function respondToUpgrade(
  { incoming, socket, head, facts }: Upgrade,
  handler: RequestHandler,
  deps: ApiServerDeps,
  signal: AbortSignal,
): Promise<void> {
  const context = contextOf(incoming, deps);
  const written = socket as Duplex & { readonly bytesWritten?: number };
  const before = written.bytesWritten ?? 0;
  try {
    const request = { incoming, client: facts, auditId: context.auditId, warn: context.warn };
    const handled = await handler.handle(request, signal);
    if (handled.kind === 'stream') await deps.streams?.upgrade(handled.call, socket, head, signal);
    else if (handled.kind === 'reply') rejectUpgrade(socket, handled.reply, context);
    else socket.destroy();
  } catch (error) {
    context.logUnexpected(error, signal);
    if ((written.bytesWritten ?? 0) > before) socket.destroy();
    else rejectUpgrade(socket, errorReply(error), context);
  }
}

/** Sends a complete response on the connection of an upgrade request and closes it. */
function rejectUpgrade(
  socket: Duplex,
  { status, headers, body }: Reply,
  { auditId, warnings }: ResponseContext,
): void {
  const content = bodyBytes({ body });
  const all = {
    ...headers,
    'Audit-Id': auditId,
    'Cache-Control': 'no-cache, private',
    'Content-Length': String(content.length),
    Connection: 'close',
  };
  const lines = [
    `HTTP/1.1 ${status} ${nodeHttp.STATUS_CODES[status] ?? ''}`,
    ...Object.entries(all).map(([name, value]) => `${name}: ${value}`),
    ...warningHeaders(warnings).map((warning) => `Warning: ${warning}`),
  ];
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  socket.end(Buffer.concat([head, content]), () => socket.destroy());
}

interface ResponseContext {
  readonly auditId: string;
  readonly warnings: string[];
  readonly warn: (text: string) => void;
  /** Logs unexpected errors, unless the client has disconnected. */
  readonly logUnexpected: (error: unknown, signal: AbortSignal) => void;
}

/** The maximum number of warnings of a response. */
const maxWarnings = 100;

function contextOf(incoming: IncomingMessage, { random, logger }: ApiServerDeps): ResponseContext {
  const auditId = auditIdOf(incoming) ?? uuidOf(randomHex(random, 32));
  const warnings: string[] = [];
  return {
    auditId,
    warnings,
    warn: (text) => {
      if (warnings.length < maxWarnings) warnings.push(text);
    },
    logUnexpected: (error, signal) => {
      if (isExpectedError(error) || signal.aborted) return;
      const path = (incoming.url ?? '').split('?', 1)[0]?.slice(0, 200);
      logger.error('Unexpected error in API request', error, { auditId, method: incoming.method, path });
    },
  };
}

/** A client may set the audit ID of its request in the Audit-ID header. */
function auditIdOf({ headers }: IncomingMessage): string | undefined {
  const requestId = headers['audit-id'];
  return typeof requestId === 'string' && /^[\w.-]{1,64}$/.test(requestId) ? requestId : undefined;
}

function uuidOf(hex: string): string {
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `a${hex.slice(17, 20)}`,
    hex.slice(20),
  ].join('-');
}
