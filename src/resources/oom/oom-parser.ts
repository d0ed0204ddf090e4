/** A process that the kernel killed to free memory. */
export interface OomKill {
  /** The cgroup whose memory ran out: / for the whole machine. */
  readonly cgroup: string;
  /** The cgroup of the process. */
  readonly victimCgroup: string;
  /** Empty and 0 when the kernel did not say. */
  readonly process: string;
  readonly pid: number;
}

const first = /invoked oom-killer:/;
const modern =
  /oom-kill:constraint=[^,]*,.*?(?:,oom_memcg=([^,]*)|,(global_oom)),task_memcg=([^,]*),task=(.*),pid=(\d+),uid=/;
const legacy = /Task in (.*) killed as a result of limit of (.*)/;
const last = /Killed process (\d+) \((.+)\)(?: |,|$)/;

/** The kernel cuts its lines at half of this. */
const longestLine = 2_048;

const nothingKnown: OomKill = { cgroup: '/', victimCgroup: '/', process: '', pid: 0 };

/** Puts together what the kernel says in several lines; older kernels name the cgroups and the process apart. */
export class OomParser {
  #begun: OomKill | undefined;

  /** The kill that this line completes. */
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

/** The pod and the container whose cgroup it is, as either driver spells it; undefined for that of something else. */
export function containerAt(cgroup: string): { readonly uid: string; readonly id: string } | undefined {
  const parts = /\/(?:[^/]*-)?pod([^/]+?)(?:\.slice)?\/(?:[^/]*-)?([0-9a-f]{64})(?:\.scope)?(?:\/|$)/.exec(
    cgroup,
  );
  if (parts === null) return undefined;
  const [, uid = '', id = ''] = parts;
  return { uid: uid.replaceAll('_', '-'), id };
}
