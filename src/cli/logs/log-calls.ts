import type { IncomingMessage } from 'node:http';
import { KubelingError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { KubeletClient } from '../streams/kubelet-client.ts';

/** The log options of the user. */
export interface LogRequest {
  readonly tailLines?: number | undefined;
  /** In the kubelet's format. */
  readonly sinceTime?: string | undefined;
  readonly timestamps: 'shown' | 'hidden';
  readonly limitBytes?: number | undefined;
}

export interface LogTarget {
  readonly pod: Pod;
  readonly container: string;
}

/** Finds the kubelet for each call, because a restarted kubelet may have another port and token. */
export type FindKubelet = () => Promise<KubeletClient>;

/** Opens the log; rejects with LOGS_UNAVAILABLE and the kubelet's message when it is denied. */
export async function openLog(
  find: FindKubelet,
  { pod, container }: LogTarget,
  query: Readonly<Record<string, string | number | undefined>>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const parts = [pod.metadata.namespace, pod.metadata.name, container].map(encodeURIComponent);
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, `${value}`]],
  );
  const path = `/containerLogs/${parts.join('/')}?${new URLSearchParams(given)}`;
  const answer = await (await find()).read(path, signal);
  if (answer.statusCode === 200) return answer;
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk);
  throw new KubelingError('LOGS_UNAVAILABLE', messageOf(Buffer.concat(chunks).toString()));
}

function messageOf(body: string): string {
  try {
    const { message }: { readonly message?: unknown } = JSON.parse(body);
    return String(message);
  } catch {
    return body.trim();
  }
}

export function logQueryOf({ tailLines, sinceTime, limitBytes, timestamps }: LogRequest) {
  return { tailLines, sinceTime, limitBytes, timestamps: String(timestamps === 'shown') };
}
