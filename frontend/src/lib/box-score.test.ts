import { describe, expect, test } from "vitest";
import {
  parseBoxScore,
  COLUMNS,
  formatDay,
  parseDay,
  isSearchMatch,
  dataLinks,
  nearbyGames,
  shortName,
} from "./box-score";

const column = (...values: string[]) => Object.fromEntries(values.map((value, at) => [String(at), value]));
const GAME = {
  home_name: "Millers",
  vis_name: "Gulls",
  home_city: "Northfield",
  vis_city: "Harbour",
  day: "02_03_17",
  box_score: {
    PLAYER_NAME: column("Dana Okafor", "Per Lunde", "Tomas Reyl Jr.", "Ben Okoye"),
    TEAM_CITY: column("Harbour", "Harbour", "Northfield", "Northfield"),
    START_POSITION: column("F", "N/A", "G", "N/A"),
    MIN: column("36", "22", "38", "N/A"),
    PTS: column("24", "0", "31", "N/A"),
    FGM: column("9", "0", "12", "N/A"),
    FGA: column("17", "0", "22", "N/A"),
    REB: column("11", "3", "8", "N/A"),
  },
  vis_line: {
    "TEAM-PTS": "107",
    "TEAM-PTS_QTR1": "29",
    "TEAM-PTS_QTR2": "26",
    "TEAM-PTS_QTR3": "24",
    "TEAM-PTS_QTR4": "25",
    "TEAM-WINS": "4",
    "TEAM-LOSSES": "1",
    "TEAM-REB": "49",
  },
  home_line: { "TEAM-PTS": "98" },
};
const at = (name: string) => COLUMNS.findIndex((each) => each.name === name);

describe("a RotoWire record as a box score", () => {
  const [gulls, millers] = parseBoxScore(GAME as never)!.teams;
  test("players by side, starters and bench, and those who did not play", () => {
    expect(gulls.starters.map((row) => row.name)).toEqual(["Dana Okafor"]);
    expect(gulls.bench.map((row) => row.name)).toEqual(["Per Lunde"]);
    expect(millers.inactivePlayers).toEqual(["Ben Okoye"]);
  });
  test("shots show made and attempted; a rate without attempts is a dash, without makes 0", () => {
    const [okafor, lunde] = [gulls.starters[0]!, gulls.bench[0]!];
    expect(okafor.cells[at("fg")]).toEqual({ text: "9-17", parts: ["9", "17"], source: "Okafor, FG" });
    expect(okafor.cells[at("fgPct")]!.text).toBe("53");
    expect([lunde.cells[at("pts")]!.text, lunde.cells[at("fg")]!.text, lunde.cells[at("fgPct")]!.text]).toEqual([
      "0",
      "0-0",
      "–",
    ]);
  });
  test("the team's own line precedes the sum of its players; overtime is the rest after four quarters", () => {
    expect(gulls.totals!.cells[at("reb")]!.text).toBe("49");
    expect(gulls.totals!.cells[at("fg")]!.text).toBe("9-17");
    expect([gulls.overtime, gulls.final, gulls.record]).toEqual(["3", "107", "4-1"]);
    expect([millers.overtime, millers.record]).toEqual(["", ""]);
  });
  test("teams of one city are separated by the second block of starters", () => {
    const city = column("L", "L", "L", "L");
    const same = { ...GAME, home_city: "L", vis_city: "L", box_score: { ...GAME.box_score, TEAM_CITY: city } };
    expect(parseBoxScore(same as never)!.teams[1].starters[0]!.name).toBe("Tomas Reyl Jr.");
  });
  test.each([null, [], "x", { weather: 1 }, { home_name: "Gulls" }])("%j is not a box score", (data) => {
    expect(parseBoxScore(data as never)).toBeUndefined();
  });
});

describe("games and links around a box score", () => {
  test.each([
    ["02_03_17", "Friday", "3 February 2017"],
    ["2025-11-14", "Friday", "14 November 2025"],
  ])("%s is a %s", (text, weekday, date) => expect(formatDay(parseDay(text)!)).toEqual({ weekday, date }));
  test.each(["", "02_31_17", "soon"])("%j is not a date", (text) => expect(parseDay(text)).toBeUndefined());
  test("last and next games of both teams, visitors first; a missing game is undefined", () => {
    const season = { home: { last: GAME, next: null }, vis: { last: null, next: GAME } };
    expect(
      nearbyGames({ ...GAME, season } as never).map(({ team, when, score }) => [team, when, score !== undefined]),
    ).toEqual([
      ["Gulls", "last", false],
      ["Gulls", "next", true],
      ["Millers", "last", true],
      ["Millers", "next", false],
    ]);
    expect(nearbyGames(GAME as never)).toEqual([]);
  });
  test("only web addresses are links", () => {
    expect(dataLinks({ links: { Calendar: "https://a.example", Bad: "javascript:x" } } as never)).toEqual([
      ["Calendar", "https://a.example"],
    ]);
  });
  test("numbers match as a whole, words anywhere", () => {
    expect([
      isSearchMatch("24", "2"),
      isSearchMatch("9-17", "17"),
      isSearchMatch("Dana Okafor", "oka"),
      isSearchMatch("x", " "),
    ]).toEqual([false, true, true, false]);
  });
  test("sources use the last name", () => expect(shortName("Larry Nance Jr.")).toBe("Nance"));
});
