import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { nodeHttp, randomHex } from '../../lib/index.ts';
import type { WatchLine } from '../api/responses.ts';
import {
  bytesOf,
  errorReply,
  isForeseen,
  type Reply,
  sendPieces,
  sendReply,
  setCommonHeaders,
  warningHeaders,
} from './reply.ts';
import type { Handled, RequestHandler } from './request-handler.ts';
import type { CallerFacts, FrontDeps } from './server-deps.ts';
import { sendWatch } from './watch-response.ts';

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly facts: CallerFacts;
}

/** Answers one request, whatever comes of it. Rejects only where there is nobody left to answer. */
export async function answerRequest(
  { incoming, outgoing, facts }: Exchange,
  handler: RequestHandler,
  deps: FrontDeps,
  signal: AbortSignal,
): Promise<void> {
  const context = contextOf(incoming, deps);
  try {
    const request = { incoming, facts, auditId: context.auditId, warn: context.warn };
    const handled = await handler.handle(request, signal);
    // A body nobody wants is dropped; unread, it would hide that the client leaves.
    if (handled.kind !== 'stream') incoming.resume();
    await send(handled, outgoing, context, deps, signal);
  } catch (error) {
    context.complain(error, signal);
    // What has begun cannot become an error any more: a connection that breaks off says it.
    if (outgoing.headersSent) outgoing.destroy();
    else sendReply(outgoing, errorReply(error), context);
  } finally {
    if (!incoming.readableFlowing) incoming.resume();
  }
}

async function send(
  handled: Handled,
  outgoing: ServerResponse,
  context: AnswerContext,
  deps: FrontDeps,
  signal: AbortSignal,
): Promise<void> {
  if (handled.kind === 'reply') {
    const { status, headers, body } = handled.reply;
    if (typeof body === 'string' || body instanceof Uint8Array) sendReply(outgoing, handled.reply, context);
    else {
      setCommonHeaders(outgoing, context);
      outgoing.writeHead(status, headers);
      await sendPieces(outgoing, body, deps.clock, signal);
    }
    breakOffUnread(outgoing, deps);
  } else if (handled.kind === 'watch') await startWatch(handled, outgoing, context, deps, signal);
  else {
    setCommonHeaders(outgoing, context);
    await deps.streams?.answer(handled.call, outgoing, signal);
  }
}

const readWithinMs = 60_000;

/** An answer is held in memory until it is read, so whoever does not read it is not waited for without end. */
function breakOffUnread(outgoing: ServerResponse, { clock }: FrontDeps): void {
  if (outgoing.writableFinished || outgoing.destroyed) return;
  const timer = clock.timer(readWithinMs, () => void outgoing.destroy());
  outgoing.once('close', () => timer.cancel());
}

async function startWatch(
  { lines, text }: Extract<Handled, { kind: 'watch' }>,
  outgoing: ServerResponse,
  context: AnswerContext,
  { clock }: FrontDeps,
  signal: AbortSignal,
): Promise<void> {
  const first = lines.next();
  await failsAtOnce(first);
  setCommonHeaders(outgoing, context);
  outgoing.writeHead(200, { 'Content-Type': 'application/json' });
  outgoing.flushHeaders();
  const failed = (error: unknown) => context.complain(error, signal);
  await sendWatch(outgoing, { lines, first, text, failed }, clock, signal);
}

/** A watch that cannot begin is refused; one that can may have nothing to say for long, so it is not waited for. */
async function failsAtOnce(first: Promise<IteratorResult<WatchLine>>): Promise<void> {
  const aTurn = new Promise<void>((resolve) => setImmediate(resolve));
  first.catch(() => {});
  await Promise.race([first, aTurn]);
}

interface Upgrade {
  readonly incoming: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Uint8Array;
  readonly facts: CallerFacts;
}

/** The same for a connection that wants to become something else. */
export async function answerUpgrade(
  { incoming, socket, head, facts }: Upgrade,
  handler: RequestHandler,
  deps: FrontDeps,
  signal: AbortSignal,
): Promise<void> {
  const context = contextOf(incoming, deps);
  const written = socket as Duplex & { readonly bytesWritten?: number };
  const before = written.bytesWritten ?? 0;
  try {
    const request = { incoming, facts, auditId: context.auditId, warn: context.warn };
    const handled = await handler.handle(request, signal);
    if (handled.kind === 'stream') await deps.streams?.upgrade(handled.call, socket, head, signal);
    else if (handled.kind === 'reply') refuse(socket, handled.reply, context);
    else socket.destroy();
  } catch (error) {
    context.complain(error, signal);
    if ((written.bytesWritten ?? 0) > before) socket.destroy();
    else refuse(socket, errorReply(error), context);
  }
}

/** A whole answer on a connection that was to be upgraded; the connection ends with it. */
function refuse(
  socket: Duplex,
  { status, headers, body }: Reply,
  { auditId, warnings }: AnswerContext,
): void {
  const content = bytesOf({ body });
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

interface AnswerContext {
  readonly auditId: string;
  readonly warnings: string[];
  readonly warn: (text: string) => void;
  /** Says aloud what nobody foresaw, unless the client's leaving explains it. */
  readonly complain: (error: unknown, signal: AbortSignal) => void;
}

/** Nobody reads more than these. */
const mostWarnings = 100;

function contextOf(incoming: IncomingMessage, { random, logger }: FrontDeps): AnswerContext {
  const auditId = auditIdOf(incoming) ?? uuidOf(randomHex(random, 32));
  const warnings: string[] = [];
  return {
    auditId,
    warnings,
    warn: (text) => {
      if (warnings.length < mostWarnings) warnings.push(text);
    },
    complain: (error, signal) => {
      if (isForeseen(error) || signal.aborted) return;
      const path = (incoming.url ?? '').split('?', 1)[0]?.slice(0, 200);
      logger.error('Bug: a request to the API failed', error, { auditId, method: incoming.method, path });
    },
  };
}

/** A client may name its request itself, to find it again. */
function auditIdOf({ headers }: IncomingMessage): string | undefined {
  const given = headers['audit-id'];
  return typeof given === 'string' && /^[\w.-]{1,64}$/.test(given) ? given : undefined;
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
