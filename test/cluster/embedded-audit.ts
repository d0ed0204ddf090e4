import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { AuditedCall } from './audit-log.ts';

/** Published by Node.js for each request to a server of this process, before it is handled. */
const begun = 'http.server.request.start';

interface Begun {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/**
 * Records the requests of nodes to the HTTPS servers of this process, in the audit log format of
 * the real API server. The user is that of the client certificate.
 */
export function recordCalls(file: string): void {
  let requestCount = 0;
  appendFileSync(file, '');
  subscribe(begun, (message) => {
    const { request, response } = message as Begun;
    if (!isNode(request.socket as TLSSocket)) return;
    requestCount++;
    const call = callOf(request, `${process.pid}-${requestCount}`);
    const note = (stage: AuditedCall['stage']) =>
      appendFileSync(
        file,
        `${JSON.stringify({ ...call, stage, responseStatus: { code: response.statusCode } })}\n`,
      );
    if (call.verb === 'watch') {
      const { writeHead } = response;
      response.writeHead = ((...args: Parameters<typeof writeHead>) => {
        const written = Reflect.apply(writeHead, response, args);
        note('ResponseStarted');
        return written;
      }) as typeof writeHead;
    }
    response.once('close', () => note('ResponseComplete'));
  });
}

function isNode(socket: TLSSocket): boolean {
  const groups = socket.getPeerCertificate?.()?.subject?.O;
  return [groups].flat().includes('system:nodes');
}

const verbs: Readonly<Record<string, string>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

function callOf({ method = '', url = '' }: IncomingMessage, auditID: string): Omit<AuditedCall, 'stage'> {
  const { pathname, searchParams } = new URL(url, 'https://server');
  const { name, ...objectRef } = objectAt(pathname);
  const reading = searchParams.get('watch') === null ? (name === undefined ? 'list' : 'get') : 'watch';
  return {
    auditID,
    verb: verbs[method] ?? reading,
    requestURI: url,
    objectRef: { ...objectRef, ...(name === undefined ? {} : { name }) },
  };
}

/**
 * Parses `/api/v1/...` or `/apis/GROUP/VERSION/...`, followed by an optional namespace, resource,
 * name and subresource.
 */
function objectAt(pathname: string): NonNullable<AuditedCall['objectRef']> {
  const [first, ...rest] = pathname.split('/').slice(1);
  const inGroup = rest.slice(first === 'apis' ? 2 : 1);
  const isInside = inGroup[0] === 'namespaces' && inGroup.length > 2;
  const [resource, name, subresource] = isInside ? inGroup.slice(2) : inGroup;
  return {
    ...(resource === undefined ? {} : { resource }),
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
  };
}
