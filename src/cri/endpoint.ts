import { KubelingError } from '../lib/index.ts';

/** Maximum path length of a unix socket address, without the terminating zero byte. */
const longestSocketPath = 107;

/**
 * Converts a runtime endpoint to a gRPC target. Accepts `unix:///run/containerd/containerd.sock` or
 * the path alone.
 */
export function parseEndpoint(endpoint: string): string {
  const path = socketPath(endpoint);
  if (path === undefined || !path.startsWith('/')) {
    throw new KubelingError(
      'CRI_ENDPOINT',
      `Cannot use the runtime endpoint as it must be unix:// with an absolute path: current value is ${JSON.stringify(endpoint)}`,
    );
  }
  if (Buffer.byteLength(path) > longestSocketPath) {
    throw new KubelingError(
      'CRI_ENDPOINT',
      `Cannot use the runtime endpoint as a socket's path must be at most ${longestSocketPath} bytes: ${path} has ${Buffer.byteLength(path)}`,
    );
  }
  return `unix://${path}`;
}

function socketPath(endpoint: string): string | undefined {
  if (endpoint.startsWith('unix://')) return endpoint.slice('unix://'.length);
  return endpoint.includes('://') ? undefined : endpoint;
}
