/** Seconds from the first day of the year 1 to that of 1970. */
const unixEpoch = 62_135_596_800;
const minTime = -(2n ** 63n);
const maxTime = 2n ** 63n - 1n;

/** Times are held in the zone of the machine, with all that is known of it. Ours is that of a node that keeps UTC. */
const zone = '{name:(string)UTC offset:(int)0 isDST:(bool)false}';
const utc =
  `{name:(string)Local zone:([]time.zone)[${zone}] ` +
  `tx:([]time.zoneTrans)[{when:(int64)${minTime} index:(uint8)0 isstd:(bool)false isutc:(bool)false}] ` +
  `extend:(string)UTC0 cacheStart:(int64)${minTime} cacheEnd:(int64)${maxTime} cacheZone:(*time.zone)${zone}}`;

/** A time as the Go kubelet holds it; the text must be one in RFC 3339, or empty for no time. */
export function dumpTime(text: string): string {
  if (text === '') return '{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}';
  const [, fraction = ''] = /\.(\d+)/.exec(text) ?? [];
  const nanos = Number(fraction.slice(0, 9).padEnd(9, '0'));
  const seconds = Math.floor(Date.parse(text) / 1000) + unixEpoch;
  return `{Time:(time.Time){wall:(uint64)${nanos} ext:(int64)${seconds} loc:(*time.Location)${utc}}}`;
}
