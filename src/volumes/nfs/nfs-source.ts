import { isIPv6 } from 'node:net';
import { hasControlCharacters } from '../../lib/index.ts';
import { wrong } from '../manager/mount-options.ts';

/** Also the dotted form of IPv4. Never with a leading hyphen. */
const hostName = /^\w[\w.-]*$/;
const longestHost = 253;
const longestPath = 4096;

/**
 * What mount(8) and `mount.nfs` are given as source. The API server only asks for a server and for a path with a leading
 * slash, and both programs take a source with a leading hyphen for an option, so they are checked here. Steps such as `..`
 * stay: the server resolves them below its own root, and the kernel below that of the mount. Throws VOLUME_UNUSABLE.
 */
export function nfsSource({ server, path }: { readonly server: string; readonly path: string }): string {
  if (!path.startsWith('/')) throw wrong('nfs.path', 'an absolute path', path);
  if (hasControlCharacters(path)) throw wrong('nfs.path', 'without control characters', path);
  if (path.length > longestPath) throw wrong('nfs.path', `at most ${longestPath} characters long`, path);
  return `${serverName(server)}:${path}`;
}

/** Addresses of IPv6 are put in brackets, as they have colons of their own. */
function serverName(server: string): string {
  const address = /^\[(.*)\]$/.exec(server)?.[1] ?? server;
  if (isIPv6(address)) return `[${address}]`;
  if (server.length <= longestHost && hostName.test(server)) return server;
  throw wrong('nfs.server', 'a host name, an IPv4 address or an IPv6 address', server);
}
