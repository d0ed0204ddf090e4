/** Which of a process's streams a client wants. */
export interface WantedStreams {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

export type ReadQuery<T> =
  | { readonly kind: 'read'; readonly value: T }
  | { readonly kind: 'wrong'; readonly message: string };

export function readWantedStreams(query: URLSearchParams): ReadQuery<WantedStreams> {
  const asks = (name: string) => query.get(name) === '1';
  const tty = asks('tty');
  // A terminal has one output, into which the process's errors go too.
  const wanted = { stdin: asks('input'), stdout: asks('output'), stderr: asks('error') && !tty, tty };
  if (wanted.stdin || wanted.stdout || wanted.stderr) return { kind: 'read', value: wanted };
  return { kind: 'wrong', message: 'you must specify at least 1 of stdin, stdout, stderr' };
}

/** Ports a client of a WebSocket names beforehand: repeated, or with commas between them. */
export function readPorts(query: URLSearchParams): ReadQuery<readonly number[]> {
  const written = query.getAll('port').flatMap((each) => each.split(','));
  if (written.length === 0) return { kind: 'wrong', message: 'query parameter "port" is required' };
  const wrong = written.find((each) => !isPort(each));
  if (wrong === undefined) return { kind: 'read', value: written.map(Number) };
  return {
    kind: 'wrong',
    message: `query parameter "port" must be a number from 1 to 65535: it is ${JSON.stringify(wrong)}`,
  };
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}
