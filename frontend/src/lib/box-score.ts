import type { Json } from "./api-types";

/** Value of a box score: shown text, its numbers, and its name as a source. */
export interface BoxCell {
  readonly text: string;
  /** Parts that can be used separately: `9` and `17` of `9-17`. */
  readonly parts: readonly string[];
  readonly source: string;
}
/** Statistic: column header, and the order in which columns collapse. */
export interface BoxColumn {
  readonly name: ColumnName;
  readonly header: string;
  readonly isPercent: boolean;
  readonly isStrong: boolean;
}
export type ColumnName =
  | "min"
  | "pts"
  | "fg"
  | "fgPct"
  | "threes"
  | "threesPct"
  | "ft"
  | "ftPct"
  | "oreb"
  | "dreb"
  | "reb"
  | "ast"
  | "to"
  | "stl"
  | "blk"
  | "pf";
export interface BoxRow {
  readonly name: string;
  readonly cells: readonly BoxCell[];
}
export interface BoxTeam {
  readonly side: "home" | "vis";
  readonly name: string;
  readonly city: string;
  /** Wins and losses, as `32-18`; empty if missing. */
  readonly record: string;
  readonly quarters: readonly string[];
  /** Points beyond four quarters; empty without overtime. */
  readonly overtime: string;
  readonly final: string;
  readonly starters: readonly BoxRow[];
  readonly bench: readonly BoxRow[];
  readonly totals: BoxRow | undefined;
  /** Listed players who did not play. */
  readonly inactivePlayers: readonly string[];
}
export interface BoxScore {
  readonly day: Date | undefined;
  /** Visitors first, as in printed box scores. */
  readonly teams: readonly [BoxTeam, BoxTeam];
}

type Fields = { [key: string]: Json };
const isFields = (value: Json | undefined): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const fieldText = (value: Json | undefined): string => {
  const text = value === undefined || value === null || typeof value === "object" ? "" : String(value).trim();
  return text === "N/A" ? "" : text;
};
const EMPTY_CELL = "–";

/** Made and attempted shots by column; any other column is one statistic of the record. */
const SHOTS = { fg: ["FGM", "FGA"], threes: ["FG3M", "FG3A"], ft: ["FTM", "FTA"] } as const;
const RATES = { fgPct: "fg", threesPct: "threes", ftPct: "ft" } as const;
const COUNTS: Partial<Record<ColumnName, string>> = {
  min: "MIN",
  pts: "PTS",
  oreb: "OREB",
  dreb: "DREB",
  reb: "REB",
  ast: "AST",
  to: "TO",
  stl: "STL",
  blk: "BLK",
  pf: "PF",
};
const HEADERS: Record<ColumnName, string> = {
  min: "Min",
  pts: "Pts",
  fg: "FG",
  fgPct: "FG%",
  threes: "3P",
  threesPct: "3P%",
  ft: "FT",
  ftPct: "FT%",
  oreb: "OR",
  dreb: "DR",
  reb: "Reb",
  ast: "Ast",
  to: "TO",
  stl: "Stl",
  blk: "Blk",
  pf: "PF",
};
/** Counts that the team's own line has, instead of the sum of its players. */
const TEAM_FIELDS: Record<string, string> = { PTS: "TEAM-PTS", REB: "TEAM-REB", AST: "TEAM-AST", TO: "TEAM-TOV" };
export const COLUMNS: readonly BoxColumn[] = (Object.keys(HEADERS) as ColumnName[]).map((name) => ({
  name,
  header: HEADERS[name],
  isPercent: name in RATES,
  isStrong: name === "pts" || name === "reb",
}));
/** Fields that a box score shows; all other fields of a record are shown as tables. */
export const BOX_FIELDS: ReadonlySet<string> = new Set([
  ...["box_score", "day", "home_name", "vis_name", "home_city", "vis_city", "home_line", "vis_line"],
  ...["links", "season"],
]);

/** Return the box score in a record, or undefined without two named teams and players or a final score. */
export function parseBoxScore(data: Json | undefined): BoxScore | undefined {
  if (!isFields(data)) return undefined;
  const [home, vis] = [parseSide(data, "home"), parseSide(data, "vis")];
  if (!home.name || !vis.name || !("box_score" in data || "home_line" in data || "day" in data)) return undefined;
  const rows = parsePlayers(data.box_score);
  const sides = playerSides(rows, home.city, vis.city);
  const playersOn = (side: "home" | "vis") => rows.filter((_, at) => sides[at] === side);
  return {
    day: parseDay(fieldText(data.day)),
    teams: [buildTeam(vis, playersOn("vis")), buildTeam(home, playersOn("home"))],
  };
}

interface TeamSide {
  readonly side: "home" | "vis";
  readonly name: string;
  readonly city: string;
  readonly line: Fields;
}
function parseSide(data: Fields, side: "home" | "vis"): TeamSide {
  const value = data[`${side}_line`];
  const line = isFields(value) ? value : {};
  const name = fieldText(data[`${side}_name`]) || fieldText(line["TEAM-NAME"]);
  return { side, name, city: fieldText(data[`${side}_city`]) || fieldText(line["TEAM-CITY"]), line };
}

type Player = Readonly<Record<string, string>>;

/** Return one object per player from columns of statistics, in the order of the record's numbers. */
function parsePlayers(box: Json | undefined): Player[] {
  if (!isFields(box) || !isFields(box.PLAYER_NAME)) return [];
  const keys = Object.keys(box.PLAYER_NAME).sort((a, b) => Number(a) - Number(b));
  const columns = Object.entries(box).filter((entry): entry is [string, Fields] => isFields(entry[1]));
  return keys
    .map((key) => Object.fromEntries(columns.map(([name, column]) => [name, fieldText(column[key])])))
    .filter((player) => player.PLAYER_NAME);
}

/** Return the team of each player: by city, or by the second block of starters if both teams share one. */
function playerSides(rows: readonly Player[], home: string, vis: string): ("home" | "vis" | undefined)[] {
  if (home !== vis)
    return rows.map(({ TEAM_CITY: city }) => (city === home ? "home" : city === vis ? "vis" : undefined));
  const starts = rows.map((row) => Boolean(row.START_POSITION));
  const second = starts.findIndex((starting, at) => at > 0 && starting && !starts[at - 1]);
  return rows.map((_, at) => (second < 0 ? undefined : at < second ? "vis" : "home"));
}

function buildTeam({ side, name, city, line }: TeamSide, rows: readonly Player[]): BoxTeam {
  const played = rows.filter((row) => COLUMNS.some(({ name: column }) => COUNTS[column] && row[COUNTS[column]!]));
  const quarters = [1, 2, 3, 4].map((quarter) => fieldText(line[`TEAM-PTS_QTR${quarter}`]));
  const final = fieldText(line["TEAM-PTS"]);
  const rest = quarters.every(Boolean) && final ? Number(final) - sum(quarters) : 0;
  const [wins, losses] = [fieldText(line["TEAM-WINS"]), fieldText(line["TEAM-LOSSES"])];
  return {
    side,
    name,
    city,
    record: wins && losses ? `${wins}-${losses}` : "",
    quarters,
    overtime: rest > 0 ? String(rest) : "",
    final,
    starters: played.filter((row) => row.START_POSITION).map(playerRow),
    bench: played.filter((row) => !row.START_POSITION).map(playerRow),
    totals: played.length > 0 ? totalsRow(name, played, line) : undefined,
    inactivePlayers: rows.filter((row) => !played.includes(row)).map((row) => row.PLAYER_NAME!),
  };
}

const sum = (values: readonly (string | undefined)[]): number =>
  values.reduce((total, value) => total + (Number(value) || 0), 0);

/** Return the name of a player as a source: the last name, without suffixes such as `Jr.`. */
export function shortName(name: string): string {
  const words = name.split(/\s+/).filter((word) => !/^(jr|sr|ii|iii|iv|v)\.?$/i.test(word));
  return words.at(-1) ?? name;
}

const playerRow = (player: Player): BoxRow => ({
  name: player.PLAYER_NAME!,
  cells: COLUMNS.map((column) => buildCell(column, player, shortName(player.PLAYER_NAME!))),
});

function totalsRow(team: string, players: readonly Player[], line: Fields): BoxRow {
  const names = [...new Set(players.flatMap((player) => Object.keys(player)))];
  const sums = Object.fromEntries(names.map((name) => [name, String(sum(players.map((player) => player[name])))]));
  const teamValues = Object.entries(TEAM_FIELDS).flatMap(([name, field]) =>
    fieldText(line[field]) ? [[name, fieldText(line[field])]] : [],
  );
  const totals = { ...sums, ...Object.fromEntries(teamValues) };
  return { name: team, cells: COLUMNS.map((column) => buildCell(column, totals, team)) };
}

function buildCell({ name, header }: BoxColumn, player: Player, who: string): BoxCell {
  const values = cellValues(name, player);
  return { text: values.join("-") || EMPTY_CELL, parts: values, source: `${who}, ${header}` };
}

/** Return the numbers of a cell; empty if nothing was attempted or the value is missing. */
function cellValues(name: ColumnName, player: Player): string[] {
  if (name in SHOTS) {
    const [made, tried] = SHOTS[name as keyof typeof SHOTS];
    return player[made] && player[tried] ? [player[made], player[tried]] : [];
  }
  if (name in RATES) {
    const [made, tried] = SHOTS[RATES[name as keyof typeof RATES]];
    const of = Number(player[tried]);
    return of > 0 ? [String(Math.round((100 * Number(player[made])) / of))] : [];
  }
  const value = player[COUNTS[name]!];
  return value ? [value] : [];
}

/** Parse `02_03_17`, `2/3/17` or `2017-02-03` as a date. */
export function parseDay(text: string): Date | undefined {
  const iso = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  const short = /^(\d{1,2})[_/](\d{1,2})[_/](\d{2}|\d{4})$/.exec(text);
  const [year, month, day] = iso
    ? [iso[1]!, iso[2]!, iso[3]!]
    : short
      ? [short[3]!.length === 2 ? `20${short[3]}` : short[3]!, short[1]!, short[2]!]
      : [];
  if (!year) return undefined;
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  return date.getUTCMonth() === Number(month) - 1 ? date : undefined;
}

/** Return a date in words, weekday first: `Friday`, `3 February 2017`. */
export function formatDay(day: Date, locale = "en"): { readonly weekday: string; readonly date: string } {
  const part = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat(locale, { timeZone: "UTC", ...options }).format(day);
  return {
    weekday: part({ weekday: "long" }),
    date: `${day.getUTCDate()} ${part({ month: "long" })} ${day.getUTCFullYear()}`,
  };
}

// --- the games around, and links ------------------------------------------------------------------------------------

/** Previous or next game of a team; undefined if the data has none. */
export interface NearbyGame {
  readonly team: string;
  readonly when: "last" | "next";
  readonly score: BoxScore | undefined;
}

/** Return the previous and next games of both teams, visitors first; empty if the record has no season. */
export function nearbyGames(data: Json | undefined): NearbyGame[] {
  const score = parseBoxScore(data);
  const season = isFields(data) ? data.season : undefined;
  if (!score || !isFields(season)) return [];
  return score.teams.flatMap(({ side, name }) => {
    const games = season[side];
    return (["last", "next"] as const).map((when) => ({
      team: name,
      when,
      score: isFields(games) ? parseBoxScore(games[when]) : undefined,
    }));
  });
}

/** Return links to open next to the data, by title; only web addresses. */
export function dataLinks(data: Json | undefined): (readonly [title: string, href: string])[] {
  const links = isFields(data) ? data.links : undefined;
  if (!isFields(links)) return [];
  return Object.entries(links).flatMap(([title, href]) =>
    typeof href === "string" && /^https?:\/\/\S+$/.test(href) ? [[title, href] as const] : [],
  );
}

/** Return true if a cell matches the search: numbers as a whole, words anywhere. */
export function isSearchMatch(text: string, query: string): boolean {
  const term = query.trim().toLowerCase();
  if (term === "") return false;
  return /^\d+$/.test(term) ? text.split(/[^\d]+/).includes(term) : text.toLowerCase().includes(term);
}
