export { type Journal, systemJournal } from './journal.ts';
export { type LogNode, type LogTree, logTree } from './log-tree.ts';
export { type SystemLogs, systemLogsRoute } from './logs-route.ts';
