import { type Clock, withDeadline } from '../lib/index.ts';
import type { ServiceClient } from '../protocols/grpc/index.ts';
import { translateError } from './errors.ts';
import type { ContentMethods } from './gen/containerd.ts';

/** An active ingest of containerd's content store. */
export interface Ingest {
  /** The kind of content, a dash and the digest, for example layer-sha256:…. */
  readonly ref: string;
  readonly bytes: number;
  /** The size of the content; 0 when containerd does not know it. */
  readonly totalBytes: number;
}

const criNamespace = 'k8s.io';
/**
 * The deadline of a request to the content store. It is short, because the callers repeat the
 * request periodically.
 */
const limitMs = 5_000;

const sourceLabel = 'containerd.io/distribution.source.';
const childLabel = 'containerd.io/gc.ref.content';

/**
 * Digests of the content that belongs to a repository such as `r.io/team/app`: stored content and
 * the content named by its manifests. During a pull the manifest is stored first.
 */
export async function readContentOf(
  content: ServiceClient<ContentMethods>,
  clock: Clock,
  repository: string,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const slash = repository.indexOf('/');
  const label = `${sourceLabel}${repository.slice(0, slash)}`;
  const path = repository.slice(slash + 1);
  try {
    return await withDeadline(
      { clock, ms: limitMs, what: 'list the content of a repository in containerd' },
      (inner) => collectDigests(content, label, path, inner),
      signal,
    );
  } catch (error) {
    throw translateError('pullImage', error, signal);
  }
}

async function collectDigests(
  content: ServiceClient<ContentMethods>,
  label: string,
  path: string,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const digests = new Set<string>();
  const request = { filters: [`labels."${label}"`] };
  const metadata = { 'containerd-namespace': criNamespace };
  for await (const { info } of content.list(request, { signal, metadata })) {
    for (const { digest, labels } of info) {
      // For each registry, containerd stores a label on the content that lists all repositories
      // with this content.
      if (!(labels[label] ?? '').split(',').includes(path)) continue;
      digests.add(digest);
      for (const [name, value] of Object.entries(labels)) if (name.startsWith(childLabel)) digests.add(value);
    }
  }
  return digests;
}

/** Lists the active ingests; rejects with CRI_UNSUPPORTED on runtimes other than containerd. */
export async function readIngests(
  content: ServiceClient<ContentMethods>,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Ingest[]> {
  const metadata = { 'containerd-namespace': criNamespace };
  try {
    const { statuses } = await withDeadline(
      { clock, ms: limitMs, what: 'list the ingests of containerd' },
      (inner) => content.listStatuses({}, { signal: inner, timeoutMs: limitMs, metadata }),
      signal,
    );
    return statuses.map(({ ref, offset, total }) => ({
      ref,
      bytes: Number(offset),
      totalBytes: Number(total),
    }));
  } catch (error) {
    throw translateError('pullImage', error, signal);
  }
}
