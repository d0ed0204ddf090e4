/** A process killed by the OOM killer. */
export interface OomKill {
  /** The cgroup whose memory limit was reached; / if the complete machine was out of memory. */
  readonly cgroup: string;
  /** The cgroup of the killed process. */
  readonly victimCgroup: string;
  /** The name of the killed process; empty, with PID 0, if the kernel does not report it. */
  readonly process: string;
  readonly pid: number;
}

const first = /invoked oom-killer:/;
const modern =
  /oom-kill:constraint=[^,]*,.*?(?:,oom_memcg=([^,]*)|,(global_oom)),task_memcg=([^,]*),task=(.*),pid=(\d+),uid=/;
const legacy = /Task in (.*) killed as a result of limit of (.*)/;
const last = /Killed process (\d+) \((.+)\)(?: |,|$)/;

/** The maximum length of a parsed line, half of the kernel's limit. */
const longestLine = 2_048;

const nothingKnown: OomKill = { cgroup: '/', victimCgroup: '/', process: '', pid: 0 };

/**
 * Combines the kernel log lines of one OOM kill; older kernels report the cgroups and the process
 * in separate lines.
 */
export class OomParser {
  #begun: OomKill | undefined;

  /** Returns the OOM kill that this line completes; undefined if it completes none. */
  take(record: string): OomKill | undefined {
    const line = record.slice(0, longestLine);
    if (first.test(line)) this.#begun = nothingKnown;
    if (this.#begun === undefined) return undefined;
    const whole = modern.exec(line);
    if (whole !== null) return this.#end(modernKill(whole));
    const place = legacy.exec(line);
    if (place !== null) {
      const [, victimCgroup = '/', cgroup = '/'] = place;
      this.#begun = { ...this.#begun, cgroup, victimCgroup };
    }
    const killed = last.exec(line);
    if (killed === null) return undefined;
    return this.#end({ ...this.#begun, pid: Number(killed[1]), process: killed[2] ?? '' });
  }

  #end(kill: OomKill): OomKill {
    this.#begun = undefined;
    return kill;
  }
}

function modernKill([, cgroup, , victimCgroup = '/', process = '', pid]: RegExpExecArray): OomKill {
  return { cgroup: cgroup ?? '/', victimCgroup, process, pid: Number(pid) };
}

/** Returns the pod and container of the cgroup, with either driver; undefined for other cgroups. */
export function containerAt(cgroup: string): { readonly uid: string; readonly id: string } | undefined {
  const parts = /\/(?:[^/]*-)?pod([^/]+?)(?:\.slice)?\/(?:[^/]*-)?([0-9a-f]{64})(?:\.scope)?(?:\/|$)/.exec(
    cgroup,
  );
  if (parts === null) return undefined;
  const [, uid = '', id = ''] = parts;
  return { uid: uid.replaceAll('_', '-'), id };
}
